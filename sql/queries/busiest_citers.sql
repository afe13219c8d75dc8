-- The pull requests that cite most others, by counted citations; limit=20 rows.
SELECT
    edges.repository,
    edges.source AS number,
    count(DISTINCT edges.target) AS cited,
    landed.style,
    landed.landed_at,
    landed.subject
FROM citation_edges AS edges
LEFT JOIN landed_pull_requests AS landed ON landed.repository = edges.repository AND landed.number = edges.source
WHERE edges.counted = 1
    AND (CAST(:repository AS TEXT) IS NULL OR edges.repository = CAST(:repository AS TEXT))
GROUP BY edges.repository, edges.source, landed.style, landed.landed_at, landed.subject
ORDER BY count(DISTINCT edges.target) DESC, edges.repository, edges.source
LIMIT CAST(coalesce(CAST(:limit AS TEXT), '20') AS INTEGER)
