-- How many citations of each relation count, and how many do not, by repository.
SELECT
    repository,
    relation,
    sum(counted) AS counted,
    sum(1 - counted) AS not_counted,
    count(DISTINCT source) AS sources,
    count(DISTINCT target) AS targets
FROM citation_edges
WHERE CAST(:repository AS TEXT) IS NULL OR repository = CAST(:repository AS TEXT)
GROUP BY repository, relation
ORDER BY repository, sum(counted) DESC, relation
