-- board 04, medium: How many votes a post gets on average, topic by topic.
-- keys: 0
SELECT v.topic_id, v.votes::float / p.posts AS votes_per_post
FROM (SELECT p.topic_id, count(*) AS votes FROM votes v JOIN posts p ON v.post_id = p.id GROUP BY p.topic_id) v
JOIN (SELECT topic_id, count(*) AS posts FROM posts GROUP BY topic_id) p ON p.topic_id = v.topic_id;

-- board 06, hard: Upvotes of some tags.
-- keys: none
SELECT count(*) FILTER (WHERE 'sql' = ANY (string_to_array(p.tags, ','))) AS sql,
       count(*) FILTER (WHERE 'knife' = ANY (string_to_array(p.tags, ','))) AS knife,
       count(*) FILTER (WHERE 'guitar' = ANY (string_to_array(p.tags, ','))) AS guitar
FROM votes v
JOIN posts p ON p.id = v.post_id
WHERE v.kind = 'up';

-- board 07, hard: How many questions have no answer yet?
-- keys: none
SELECT (SELECT count(*) FROM posts WHERE kind = 'question') - (SELECT count(DISTINCT parent_id) FROM posts) AS unanswered;

-- market 05, medium: Revenue by the seller's city.
-- keys: 0
SELECT s.city, sum(o.amount) AS revenue
FROM orders o
JOIN items i ON i.item_id = o.item_id
JOIN people s ON s.person_id = i.seller_id
GROUP BY s.city
ORDER BY revenue DESC;

-- market 07, hard: How many buyers came back, to whomever?
-- keys: none
SELECT count(*) AS came_back FROM (SELECT buyer_id FROM orders GROUP BY buyer_id HAVING count(*) > 1) x;

-- messenger 06, hard: Messages from country to country.
-- keys: 0, 1
SELECT s.country AS from_country, r.country AS to_country, count(*) AS messages
FROM messages m
JOIN accounts s ON s.account_id = m.sender
JOIN accounts r ON r.account_id = m.receiver
GROUP BY s.country, r.country;
