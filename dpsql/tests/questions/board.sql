-- board 01, simple: Votes that posts got, month by month.
-- keys: 0
SELECT date_trunc('month', v.cast_at)::date AS month, count(*) AS votes
FROM votes v
JOIN posts p ON v.post_id = p.id
GROUP BY 1
ORDER BY 1;

-- board 02, simple: The top three topics by upvotes.
-- keys: 0
SELECT t.name, count(*) AS upvotes
FROM votes v
JOIN posts p ON p.id = v.post_id
JOIN topics t USING (topic_id)
WHERE v.kind = 'up'
GROUP BY t.name
ORDER BY upvotes DESC
LIMIT 3;

-- board 03, simple: How many different posts were voted on in December?
-- keys: none
SELECT count(DISTINCT post_id) AS posts FROM votes WHERE cast_at >= '2025-12-01';

-- board 04, medium: Posts by how many votes they got.
-- keys: 0
SELECT votes, count(*) AS posts
FROM (
  SELECT p.id, count(v.id) AS votes
  FROM posts p
  LEFT JOIN votes v ON v.post_id = p.id
  GROUP BY p.id
) x
GROUP BY votes
ORDER BY votes;

-- board 05, medium: Which share of the answers came within a day of the question, topic by topic?
-- keys: 0
SELECT t.name,
       count(*) AS answers,
       round(100.0 * count(*) FILTER (WHERE a.created_at <= q.created_at + interval '1 day') / count(*), 1) AS within_a_day_pct
FROM posts a
JOIN posts q ON a.parent_id = q.id
JOIN topics t ON t.topic_id = q.topic_id
GROUP BY t.name
ORDER BY t.name;

-- board 06, hard: The top tags by upvotes.
-- keys: 0
SELECT tag, count(*) AS upvotes
FROM votes v
JOIN posts p ON p.id = v.post_id
CROSS JOIN LATERAL unnest(string_to_array(p.tags, ',')) AS tag
WHERE v.kind = 'up'
GROUP BY tag
ORDER BY upvotes DESC;

-- board 07, hard: How many questions have no answer yet?
-- keys: none
SELECT count(*) AS unanswered
FROM posts q
WHERE q.kind = 'question'
  AND NOT EXISTS (SELECT 1 FROM posts a WHERE a.parent_id = q.id);
