-- Which pairs of pull requests chains may use and why others not, by repository, outcome, sources and relation.
SELECT
    r.owner || '/' || r.name AS repository,
    d.outcome,
    d.sources,
    d.relation,
    count(*) AS pairs
FROM dependencies AS d
JOIN repositories AS r ON r.id = d.repository_id
WHERE CAST(:repository AS TEXT) IS NULL OR r.owner || '/' || r.name = CAST(:repository AS TEXT)
GROUP BY r.owner, r.name, d.outcome, d.sources, d.relation
ORDER BY r.owner, r.name, count(*) DESC, d.outcome, d.sources, d.relation
