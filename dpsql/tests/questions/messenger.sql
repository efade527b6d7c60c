-- messenger 01, simple: Messages by the country of who gets them.
-- keys: 0
SELECT r.country, count(*) AS messages, round(avg(m.chars), 1) AS chars
FROM messages m
JOIN accounts r ON m.receiver = r.account_id
GROUP BY r.country
ORDER BY messages DESC;

-- messenger 02, simple: How many people get messages at all?
-- keys: none
SELECT count(DISTINCT receiver) AS receivers FROM messages;

-- messenger 03, simple: How many notes do people send to themselves?
-- keys: none
SELECT count(*) AS notes FROM messages WHERE sender = receiver;

-- messenger 04, medium: Which share of messages crosses a border, month by month?
-- keys: 0
SELECT to_char(m.sent_at, 'YYYY-MM') AS month,
       round(100.0 * count(*) FILTER (WHERE s.country <> r.country) / count(*), 1) AS abroad_pct
FROM messages m
JOIN accounts s ON s.account_id = m.sender
JOIN accounts r ON r.account_id = m.receiver
GROUP BY 1
ORDER BY 1;

-- messenger 05, medium: Of the messages that answer one, how many came within a day?
-- keys: none
SELECT count(*) AS answers, count(*) FILTER (WHERE a.sent_at - m.sent_at < interval '1 day') AS within_a_day
FROM messages a
JOIN messages m ON a.answers_sender = m.sender AND a.answers_number = m.number;

-- messenger 06, hard: Pairs of people who write to each other.
-- keys: none
SELECT count(*) AS pairs
FROM (SELECT DISTINCT sender, receiver FROM messages) a
JOIN (SELECT DISTINCT sender, receiver FROM messages) b ON a.sender = b.receiver AND a.receiver = b.sender
WHERE a.sender < a.receiver;
