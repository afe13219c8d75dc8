-- What daVinci-Agency's authors choose repositories by (section 4.1): landed pull requests, reviews, languages.
WITH landed AS (
    SELECT repository_id, number
    FROM pull_requests
    WHERE outcome = 'landed'
),
spoken AS (
    SELECT t.repository_id, t.number,
        sum(CASE WHEN t.field = 'comment' THEN 1 ELSE 0 END) AS comments,
        sum(CASE WHEN t.field IN ('review', 'review_comment') THEN 1 ELSE 0 END) AS reviews
    FROM pull_request_texts AS t
    WHERE t.field IN ('comment', 'review', 'review_comment') AND coalesce(t.author_kind, 'User') <> 'Bot'
    GROUP BY t.repository_id, t.number
),
talk AS (
    SELECT landed.repository_id,
        count(*) AS pull_requests,
        sum(CASE WHEN spoken.reviews > 0 THEN 1 ELSE 0 END) AS reviewed,
        CAST(sum(coalesce(spoken.reviews, 0)) AS BIGINT) AS reviews,
        CAST(sum(coalesce(spoken.comments, 0)) AS BIGINT) AS comments
    FROM landed
    LEFT JOIN spoken ON spoken.repository_id = landed.repository_id AND spoken.number = landed.number
    GROUP BY landed.repository_id
),
files AS (
    SELECT repository_id,
        CASE
            WHEN path LIKE '%.py' THEN 'Python'
            WHEN path LIKE '%.java' OR path LIKE '%.kt' THEN 'Java, Kotlin'
            WHEN path LIKE '%.go' THEN 'Go'
            WHEN path LIKE '%.rs' THEN 'Rust'
            WHEN path LIKE '%.c' OR path LIKE '%.h' OR path LIKE '%.cc' OR path LIKE '%.cpp' OR path LIKE '%.hpp'
                THEN 'C, C++'
            WHEN path LIKE '%.ts' OR path LIKE '%.tsx' OR path LIKE '%.js' OR path LIKE '%.jsx' OR path LIKE '%.mjs'
                THEN 'JavaScript, TypeScript'
            WHEN path LIKE '%.cs' THEN 'C#'
            WHEN path LIKE '%.rb' THEN 'Ruby'
            WHEN path LIKE '%.php' THEN 'PHP'
        END AS language
    FROM landing_files
),
languages AS (
    SELECT repository_id, language, count(*) AS changes,
        row_number() OVER (PARTITION BY repository_id ORDER BY count(*) DESC, language) AS rank
    FROM files
    WHERE language IS NOT NULL
    GROUP BY repository_id, language
)
SELECT
    r.owner || '/' || r.name AS repository,
    talk.pull_requests AS landed,
    talk.reviewed,
    talk.reviews,
    talk.comments,
    one.language,
    one.changes,
    two.language AS second_language,
    two.changes AS second_changes
FROM talk
JOIN repositories AS r ON r.id = talk.repository_id
LEFT JOIN languages AS one ON one.repository_id = r.id AND one.rank = 1
LEFT JOIN languages AS two ON two.repository_id = r.id AND two.rank = 2
WHERE CAST(:repository AS TEXT) IS NULL OR r.owner || '/' || r.name = CAST(:repository AS TEXT)
ORDER BY talk.pull_requests DESC, r.owner, r.name
