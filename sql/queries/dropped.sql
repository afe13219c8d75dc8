-- Why landed pull requests are in no chain, by repository, strategy and outcome.
SELECT
    r.owner || '/' || r.name AS repository,
    c.strategy,
    c.outcome,
    count(*) AS pull_requests
FROM candidates AS c
JOIN repositories AS r ON r.id = c.repository_id
WHERE c.outcome NOT IN ('chained', 'frozen')
    AND (CAST(:repository AS TEXT) IS NULL OR r.owner || '/' || r.name = CAST(:repository AS TEXT))
GROUP BY r.owner, r.name, c.strategy, c.outcome
ORDER BY r.owner, r.name, c.strategy, count(*) DESC, c.outcome
