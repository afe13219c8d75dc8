"""What each verdict's judge was shown. Verdicts without this column are of a judge that saw query and patches alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("verdicts", sa.Column("judge_sees", sa.String(length=16), nullable=True))
    verdicts = sa.table("verdicts", sa.column("judge_sees"), sa.column("score"), sa.column("judge_error"))
    asked = sa.or_(verdicts.c.score.is_not(None), verdicts.c.judge_error.is_not(None))
    op.execute(verdicts.update().where(asked).values(judge_sees="patches"))
