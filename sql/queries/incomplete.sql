-- What GitHub counts of pull requests and did not give, asked twice; asked again when they change.
SELECT
    r.owner || '/' || r.name AS repository,
    i.number,
    i.connection,
    i.came,
    i.total,
    i.reason
FROM incomplete_parts AS i
JOIN repositories AS r ON r.id = i.repository_id
WHERE CAST(:repository AS TEXT) IS NULL OR r.owner || '/' || r.name = CAST(:repository AS TEXT)
ORDER BY r.owner, r.name, i.number, i.connection
