"""Views of chains, tasks, proofs and rollouts, for those who read a database with other programs."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"

# One row per stage of a chain, and per strategy that chose it; what a survey drew is no choice.
CHAIN_STAGES = """
CREATE VIEW chosen_stages (
    repository, chain, strategy, score, position, number, subject, landed_at, base_sha, landed_sha, source_lines,
    test_lines, relation, confidence, worth
) AS
SELECT
    r.owner || '/' || r.name, s.chain_id, c.strategy, c.score, s.position, s.number, s.subject, s.landed_at,
    s.base_sha, s.landed_sha, s.source_lines, s.test_lines, s.relation, s.confidence, s.worth
FROM selections AS c
JOIN chain_stages AS s ON s.chain_id = c.chain_id
JOIN repositories AS r ON r.id = s.repository_id
WHERE c.outcome = 'selected' AND c.strategy <> 'survey'
"""

QUERIES = """
CREATE VIEW task_queries (repository, chain, outcome, overview, position, number, query, model) AS
SELECT
    r.owner || '/' || r.name, t.chain_id, t.outcome, t.overview, q.position, s.number, q.query, t.model
FROM tasks AS t
JOIN task_stages AS q ON q.chain_id = t.chain_id
JOIN chain_stages AS s ON s.chain_id = q.chain_id AND s.position = q.position
JOIN repositories AS r ON r.id = s.repository_id
"""

PROOFS = """
CREATE VIEW stage_proofs (
    repository, chain, position, number, chain_outcome, outcome, reason, f2p, p2p, own_f2p, image, runner, backend
) AS
SELECT
    r.owner || '/' || r.name, p.chain_id, p.position, s.number, v.outcome, p.outcome, p.reason, {f2p}, {p2p}, {own},
    p.image, p.runner, v.backend
FROM stage_tests AS p
JOIN chain_stages AS s ON s.chain_id = p.chain_id AND s.position = p.position
JOIN repositories AS r ON r.id = s.repository_id
LEFT JOIN validations AS v ON v.chain_id = p.chain_id
"""

# The verdict is that of a stage's last attempt.
ROLLOUTS = """
CREATE VIEW rollout_stages (
    repository, chain, trajectory, sample, scaffold, model, trajectory_outcome, usd, position, number, outcome, reason,
    attempts, steps, score, tests
) AS
SELECT
    r.owner || '/' || r.name, t.chain_id, t.id, t.sample, t.scaffold, t.model, t.outcome, t.usd, e.position, s.number,
    e.outcome, e.reason, e.attempts, e.steps, v.score, v.tests
FROM trajectories AS t
JOIN trajectory_stages AS e ON e.trajectory_id = t.id
JOIN chain_stages AS s ON s.chain_id = t.chain_id AND s.position = e.position
JOIN repositories AS r ON r.id = s.repository_id
LEFT JOIN verdicts AS v ON v.trajectory_id = t.id AND v.position = e.position AND v.attempt = (
    SELECT max(attempt) FROM verdicts AS w WHERE w.trajectory_id = t.id AND w.position = e.position
)
"""


def upgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"

    def count(name: str) -> str:
        one = (
            f"json_array_length(p.classes::json -> '{name}')"
            if postgresql
            else f"json_array_length(p.classes, '$.{name}')"
        )
        return f"coalesce({one}, 0)"

    own = "(p.strength::json ->> 'own')::integer" if postgresql else "json_extract(p.strength, '$.own')"
    op.execute(CHAIN_STAGES)
    op.execute(QUERIES)
    op.execute(PROOFS.format(f2p=count("f2p"), p2p=count("p2p"), own=own))
    op.execute(ROLLOUTS)
