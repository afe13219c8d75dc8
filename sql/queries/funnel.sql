-- What became of every pull request, by repository: outcomes and reasons, landing styles, citations.
WITH chosen AS (
    SELECT id, owner || '/' || name AS repository
    FROM repositories
    WHERE CAST(:repository AS TEXT) IS NULL OR owner || '/' || name = CAST(:repository AS TEXT)
),
steps AS (
    SELECT repository_id, 1 AS step, 'pull requests' AS stage, '' AS name, count(*) AS rows_counted
    FROM pull_requests
    GROUP BY repository_id
    UNION ALL
    SELECT repository_id, 2, 'outcome', outcome, count(*)
    FROM pull_requests
    GROUP BY repository_id, outcome
    UNION ALL
    SELECT repository_id, 3, 'landed by style', style, count(*)
    FROM (
        SELECT repository_id, style,
            row_number() OVER (PARTITION BY repository_id, number ORDER BY is_default DESC, landed_at, branch) AS rank
        FROM landings
    ) AS ranked
    WHERE rank = 1
    GROUP BY repository_id, style
    UNION ALL
    SELECT repository_id, 4, 'citations', CASE WHEN counted THEN 'counted' ELSE coalesce(reason, 'no reason') END,
        count(*)
    FROM citations
    GROUP BY repository_id, CASE WHEN counted THEN 'counted' ELSE coalesce(reason, 'no reason') END
)
SELECT chosen.repository, steps.stage, steps.name, steps.rows_counted AS count
FROM chosen
JOIN steps ON steps.repository_id = chosen.id
ORDER BY chosen.repository, steps.step, steps.rows_counted DESC, steps.name
