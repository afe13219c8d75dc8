-- What models were asked, by purpose, model and where prices are from: calls (refused ones apart), tokens, USD. A call whose cost nobody said counts with its reservation.
SELECT
    l.purpose,
    l.model,
    l.priced_by,
    sum(CASE WHEN l.state = 'released' THEN 0 ELSE 1 END) AS calls,
    sum(CASE WHEN l.state = 'stored' THEN 1 ELSE 0 END) AS replies,
    sum(CASE WHEN l.state = 'released' THEN 1 ELSE 0 END) AS refused,
    sum(l.tokens_in) AS tokens_in,
    sum(l.tokens_cached) AS tokens_cached,
    sum(l.tokens_out) AS tokens_out,
    sum(CASE WHEN l.state = 'released' THEN 0 ELSE coalesce(l.usd, l.reserved_usd) END) AS usd
FROM llm_calls AS l
LEFT JOIN chains AS c ON c.id = substr(l.subject, 1, 16)
LEFT JOIN repositories AS r ON r.id = c.repository_id
WHERE CAST(:repository AS TEXT) IS NULL OR r.owner || '/' || r.name = CAST(:repository AS TEXT)
GROUP BY l.purpose, l.model, l.priced_by
ORDER BY l.purpose, l.model, l.priced_by
