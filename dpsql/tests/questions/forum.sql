-- forum 01, simple: How many members come from each country?
-- keys: 0
SELECT coalesce(country, 'unknown') AS country, count(*) AS members FROM members GROUP BY 1 ORDER BY 2 DESC;

-- forum 02, simple: Posts per month.
-- keys: 0
SELECT to_char(created_at, 'YYYY-MM') AS month, count(*) AS posts FROM posts GROUP BY 1 ORDER BY 1;

-- forum 03, simple: Threads per category and the share that is solved.
-- keys: 0
SELECT c.name, count(*) AS threads, round(100.0 * avg(t.is_solved::int), 1) AS solved_pct
FROM threads t
JOIN categories c ON c.category_id = t.category_id
GROUP BY c.name
ORDER BY threads DESC;

-- forum 04, simple: How long are posts, in characters and in words?
-- keys: none
SELECT round(avg(length(body)), 1) AS avg_chars,
       round(avg(array_length(regexp_split_to_array(trim(body), '\s+'), 1)), 1) AS avg_words,
       max(length(body)) AS longest
FROM posts;

-- forum 05, simple: How many posts have a link?
-- keys: none
SELECT count(*) AS posts, count(*) FILTER (WHERE body LIKE '%http%') AS with_link FROM posts;

-- forum 06, simple: The top ten posters.
-- keys: none
SELECT m.username, count(*) AS posts
FROM posts p
JOIN members m ON m.member_id = p.author_id
GROUP BY m.username
ORDER BY posts DESC
LIMIT 10;

-- forum 07, simple: Up and down votes per month.
-- keys: 0
SELECT date_trunc('month', cast_at)::date AS month,
       sum(CASE WHEN value = 1 THEN 1 ELSE 0 END) AS up,
       sum(CASE WHEN value = -1 THEN 1 ELSE 0 END) AS down
FROM votes
GROUP BY 1
ORDER BY 1;

-- forum 08, medium: Members by the year and quarter they joined, and how many of them were seen in December.
-- keys: 0
SELECT extract(year FROM joined_at) || '-Q' || extract(quarter FROM joined_at) AS joined,
       count(*) AS members,
       count(*) FILTER (WHERE last_seen >= '2025-12-01') AS active_in_december,
       round(count(*) FILTER (WHERE last_seen >= '2025-12-01')::numeric / count(*), 3) AS share
FROM members
GROUP BY 1
ORDER BY 1;

-- forum 09, medium: How do threads start? The first word of the title.
-- keys: 0
SELECT lower(split_part(title, ' ', 1)) AS first_word, count(*) AS threads, round(avg(views), 0) AS avg_views
FROM threads
GROUP BY 1
ORDER BY threads DESC;

-- forum 10, medium: Titles that ask a question, that shout, and the rest.
-- keys: 0
SELECT CASE WHEN title ~ '\?$' THEN 'question' WHEN title ~ '^[A-Z]+:' THEN 'shouting' ELSE 'other' END AS kind,
       count(*) AS threads,
       avg(views) AS avg_views
FROM threads
GROUP BY kind
ORDER BY kind;

-- forum 11, medium: How many threads carry the tag postgres, and how many have it with sql?
-- keys: none
SELECT count(*) FILTER (WHERE 'postgres' = ANY (string_to_array(tags, ','))) AS postgres,
       count(*) FILTER (WHERE string_to_array(tags, ',') @> ARRAY['postgres', 'sql']) AS both_tags,
       count(*) FILTER (WHERE tags IS NULL) AS untagged
FROM threads;

-- forum 12, medium: How many members have never posted?
-- keys: none
SELECT count(*) AS silent_members
FROM members m
WHERE NOT EXISTS (SELECT 1 FROM posts p WHERE p.author_id = m.member_id);

-- forum 13, medium: The distribution of posts per member, lurkers included.
-- keys: 0
SELECT CASE WHEN n = 0 THEN '0' WHEN n <= 2 THEN '1-2' WHEN n <= 5 THEN '3-5' WHEN n <= 10 THEN '6-10' ELSE '11+' END AS posts, count(*) AS members
FROM (
  SELECT m.member_id, count(p.post_id) AS n
  FROM members m
  LEFT JOIN posts p ON p.author_id = m.member_id
  GROUP BY m.member_id
) x
GROUP BY 1
ORDER BY min(n);

-- forum 14, medium: Posts and their mean score by hour of the day, weekend against working days.
-- keys: 0, 1
SELECT c.is_weekend, extract(hour FROM p.created_at) AS hour, count(*) AS posts, round(avg(p.score), 2) AS avg_score
FROM posts p
JOIN calendar c ON c.day = p.created_at::date
GROUP BY c.is_weekend, extract(hour FROM p.created_at)
ORDER BY 1, 2;

-- forum 15, medium: The share of edited posts and how long after writing they are edited, in minutes.
-- keys: none
SELECT count(edited_at)::float / count(*) AS edited_share,
       avg(extract(epoch FROM edited_at - created_at) / 60) AS avg_minutes,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY extract(epoch FROM edited_at - created_at) / 60) AS p90_minutes
FROM posts;

-- forum 16, hard: How many threads got no answer from anybody else?
-- keys: 0
SELECT c.name AS category,
       count(*) AS threads,
       count(*) FILTER (WHERE NOT EXISTS (
         SELECT 1 FROM posts p WHERE p.thread_id = t.thread_id AND p.author_id <> t.author_id
       )) AS unanswered
FROM threads t
JOIN categories c USING (category_id)
GROUP BY c.name
ORDER BY unanswered DESC;

-- forum 17, hard: Time until the first reply of a thread: the median in hours per category.
-- keys: 0
WITH replies AS (
  SELECT t.thread_id, t.category_id, t.created_at, min(p.created_at) AS first_reply
  FROM threads t
  JOIN posts p ON p.thread_id = t.thread_id
  GROUP BY t.thread_id, t.category_id, t.created_at
)
SELECT c.name,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM r.first_reply - r.created_at) / 3600) AS median_hours
FROM replies r
JOIN categories c USING (category_id)
GROUP BY c.name;

-- forum 18, hard: Of those who joined in a month of 2025, which share posted within 30 days?
-- keys: 0
SELECT date_trunc('month', m.joined_at)::date AS cohort,
       count(*) AS joined,
       count(f.first_post) FILTER (WHERE f.first_post <= m.joined_at + interval '30 days') AS activated,
       round(100.0 * count(f.first_post) FILTER (WHERE f.first_post <= m.joined_at + interval '30 days') / count(*), 1) AS activated_pct
FROM members m
LEFT JOIN (SELECT author_id, min(created_at) AS first_post FROM posts GROUP BY author_id) f ON f.author_id = m.member_id
WHERE m.joined_at >= '2025-01-01' AND m.joined_at < '2025-11-01'
GROUP BY 1
ORDER BY 1;

-- forum 19, hard: Which members are asked and which answer? Members by whether they opened threads, wrote posts, did both or neither.
-- keys: 0, 1
WITH askers AS (SELECT DISTINCT author_id FROM threads),
     writers AS (SELECT DISTINCT author_id FROM posts)
SELECT (a.author_id IS NOT NULL) AS asks, (w.author_id IS NOT NULL) AS answers, count(*) AS members
FROM members m
LEFT JOIN askers a ON a.author_id = m.member_id
LEFT JOIN writers w ON w.author_id = m.member_id
GROUP BY 1, 2
ORDER BY 1, 2;

-- forum 20, hard: The concentration: which share of all posts is by the most active ten percent of those who post?
-- keys: none
WITH activity AS (
  SELECT author_id, count(*) AS n, percent_rank() OVER (ORDER BY count(*) DESC) AS pr
  FROM posts
  GROUP BY author_id
)
SELECT round(100.0 * sum(n) FILTER (WHERE pr <= 0.1) / sum(n), 1) AS pct_by_top_tenth FROM activity;

-- forum 21, hard: Best of each month: the category with the most new threads, month by month, with ties broken by name.
-- keys: 0
SELECT DISTINCT ON (month) month, name AS busiest_category, threads
FROM (
  SELECT date_trunc('month', t.created_at)::date AS month, c.name, count(*) AS threads
  FROM threads t
  JOIN categories c ON c.category_id = t.category_id
  GROUP BY 1, 2
) counted
ORDER BY month, threads DESC, name;
