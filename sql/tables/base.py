"""What all tables hang on: one metadata, with names for every constraint."""

from __future__ import annotations

from typing import Any

from sqlalchemy import MetaData
from sqlalchemy.orm import DeclarativeBase

from sql.json_text import JsonText

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Declarative base; constraint names are fixed so that migrations can name them on every database."""

    metadata = MetaData(naming_convention=NAMING)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for column in cls.__table__.columns:
            if isinstance(column.type, JsonText):
                column.type.place = f"{cls.__tablename__}.{column.name}"
