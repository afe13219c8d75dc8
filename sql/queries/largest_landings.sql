-- The landings with most files, and their line counts where those were asked for; limit=20 rows.
SELECT
    repositories.owner || '/' || repositories.name AS repository,
    landings.number,
    landings.branch,
    landings.style,
    count(*) AS files,
    sum(landing_files.additions) AS additions,
    sum(landing_files.deletions) AS deletions,
    landings.subject
FROM landings
JOIN repositories ON repositories.id = landings.repository_id
JOIN landing_files ON landing_files.repository_id = landings.repository_id
    AND landing_files.number = landings.number
    AND landing_files.branch = landings.branch
WHERE CAST(:repository AS TEXT) IS NULL
    OR repositories.owner || '/' || repositories.name = CAST(:repository AS TEXT)
GROUP BY repositories.owner, repositories.name, landings.repository_id, landings.number, landings.branch,
    landings.style, landings.subject
ORDER BY count(*) DESC, repository, landings.number, landings.branch
LIMIT CAST(coalesce(CAST(:limit AS TEXT), '20') AS INTEGER)
