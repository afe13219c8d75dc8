-- The runs, newest first: what each one read, cost, replaced and came to; limit=20 rows.
SELECT
    runs.id AS run,
    coalesce(repositories.owner || '/' || repositories.name, runs.spec) AS repository,
    runs.source,
    runs.started_at,
    runs.outcome,
    runs.graphql_requests + runs.rest_requests AS requests,
    runs.points,
    runs.waited_seconds AS waited,
    runs.replaced,
    runs.reason
FROM mine_runs AS runs
LEFT JOIN repositories ON repositories.id = runs.repository_id
WHERE CAST(:repository AS TEXT) IS NULL
    OR repositories.owner || '/' || repositories.name = CAST(:repository AS TEXT)
ORDER BY runs.id DESC
LIMIT CAST(coalesce(CAST(:limit AS TEXT), '20') AS INTEGER)
