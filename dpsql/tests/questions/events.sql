-- events 01, simple: How many events of each kind do we have?
-- keys: 0
SELECT name, count(*) AS n FROM events GROUP BY name ORDER BY n DESC;

-- events 02, simple: Daily active users in November.
-- keys: 0
SELECT occurred_at::date AS day, count(DISTINCT user_id) AS dau
FROM events
WHERE occurred_at >= '2025-11-01' AND occurred_at < '2025-12-01'
GROUP BY 1
ORDER BY 1;

-- events 03, simple: Which browsers do our users have?
-- keys: 0
SELECT properties->>'browser' AS browser, count(DISTINCT user_id) AS users
FROM events
GROUP BY 1
ORDER BY users DESC;

-- events 04, simple: New sign-ups per week.
-- keys: 0
SELECT date_trunc('week', created_at)::date AS week, count(*) AS signups
FROM users
GROUP BY week
ORDER BY week;

-- events 05, simple: Users per plan and what they bring a month.
-- keys: 0
SELECT p.plan, count(u.user_id) AS users, count(u.user_id) * p.monthly_price AS mrr
FROM plans p
LEFT JOIN users u ON u.plan = p.plan
GROUP BY p.plan, p.monthly_price
ORDER BY mrr DESC;

-- events 06, simple: At which hours of the day is the product used, on weekdays?
-- keys: 0
SELECT extract(hour FROM occurred_at)::int AS hour, count(*) AS events
FROM events
WHERE extract(dow FROM occurred_at) BETWEEN 1 AND 5
GROUP BY 1
ORDER BY 1;

-- events 07, simple: What do people search for most?
-- keys: 0
SELECT lower(properties->>'term') AS term, count(*) AS searches
FROM events
WHERE name = 'search'
GROUP BY 1
ORDER BY 2 DESC
LIMIT 5;

-- events 08, medium: Page views and median time on page for every path, without the query string.
-- keys: 0
SELECT split_part(properties->>'path', '?', 1) AS page,
       count(*) AS views,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY (properties->>'duration_ms')::int) AS median_ms
FROM events
WHERE name = 'page_view'
GROUP BY 1
ORDER BY views DESC;

-- events 09, medium: Traffic by UTM source, read from the URL.
-- keys: 0
SELECT coalesce(substring(properties->>'path' FROM 'utm_source=([a-z]+)'), 'direct') AS utm_source,
       count(*) AS views,
       count(DISTINCT user_id) AS visitors
FROM events
WHERE name = 'page_view'
GROUP BY 1
ORDER BY views DESC;

-- events 10, medium: The share of mobile in page views, by month.
-- keys: 0
SELECT to_char(date_trunc('month', occurred_at), 'Mon YYYY') AS month,
       round(100.0 * count(*) FILTER (WHERE properties->>'device' = 'mobile') / count(*), 1) AS mobile_pct
FROM events
WHERE name = 'page_view'
GROUP BY date_trunc('month', occurred_at)
ORDER BY date_trunc('month', occurred_at);

-- events 11, medium: Errors per thousand events, per plan.
-- keys: 0
SELECT u.plan, 1000.0 * sum(CASE WHEN e.name = 'error' THEN 1 ELSE 0 END) / count(*) AS errors_per_thousand
FROM events e
JOIN users u ON u.user_id = e.user_id
GROUP BY u.plan
ORDER BY 2 DESC;

-- events 12, medium: How many sessions have 1, 2, 3, ... events?
-- keys: 0
SELECT events_in_session, count(*) AS sessions
FROM (SELECT session_id, count(*) AS events_in_session FROM events GROUP BY session_id) s
GROUP BY events_in_session
ORDER BY events_in_session;

-- events 13, medium: Weekly active users and events per active user.
-- keys: 0
SELECT c.week_start,
       count(DISTINCT e.user_id) AS wau,
       round(count(e.event_id)::numeric / nullif(count(DISTINCT e.user_id), 0), 2) AS events_per_user
FROM calendar c
LEFT JOIN events e ON date_trunc('day', e.occurred_at) = c.day
GROUP BY c.week_start
ORDER BY c.week_start;

-- events 14, medium: Revenue from completed checkouts, by currency.
-- keys: 0
SELECT properties->>'currency' AS currency, count(*) AS purchases, sum((properties->>'amount')::numeric) AS revenue
FROM events
WHERE name = 'checkout_completed' AND properties ? 'amount'
GROUP BY properties->>'currency'
ORDER BY revenue DESC;

-- events 15, hard: The checkout funnel: signed up, created a project, started a checkout, completed it.
-- keys: none
SELECT count(DISTINCT user_id) FILTER (WHERE name = 'signup') AS signed_up,
       count(DISTINCT user_id) FILTER (WHERE name = 'project_created') AS created_project,
       count(DISTINCT user_id) FILTER (WHERE name = 'checkout_started') AS started,
       count(DISTINCT user_id) FILTER (WHERE name = 'checkout_completed') AS completed
FROM events;

-- events 16, hard: The strict funnel: of those who signed up, who started a checkout within 60 days after, and of these who completed it later?
-- keys: none
WITH steps AS (
  SELECT user_id,
         min(occurred_at) FILTER (WHERE name = 'signup') AS signup_at,
         min(occurred_at) FILTER (WHERE name = 'checkout_started') AS started_at,
         min(occurred_at) FILTER (WHERE name = 'checkout_completed') AS completed_at
  FROM events
  GROUP BY user_id
)
SELECT count(signup_at) AS signups,
       count(*) FILTER (WHERE started_at <= signup_at + interval '60 days') AS started,
       count(*) FILTER (WHERE started_at <= signup_at + interval '60 days' AND completed_at > started_at) AS completed
FROM steps;

-- events 17, hard: Did the experiment work? Conversion to a completed checkout by variant, of those who signed up.
-- keys: 0
WITH assigned AS (
  SELECT user_id, properties->>'variant' AS variant FROM events WHERE name = 'signup'
),
converted AS (
  SELECT DISTINCT user_id FROM events WHERE name = 'checkout_completed'
)
SELECT a.variant, count(*) AS users, count(c.user_id) AS conversions, round(count(c.user_id)::numeric / count(*), 4) AS rate
FROM assigned a
LEFT JOIN converted c USING (user_id)
GROUP BY a.variant
ORDER BY a.variant;

-- events 18, hard: Weekly retention: of those who signed up in a week, how many were active 1 to 4 weeks later?
-- keys: 0
SELECT date_trunc('week', u.created_at)::date AS cohort,
       count(DISTINCT u.user_id) AS size,
       count(DISTINCT e.user_id) FILTER (WHERE e.occurred_at >= u.created_at + interval '7 days' AND e.occurred_at < u.created_at + interval '14 days') AS week_1,
       count(DISTINCT e.user_id) FILTER (WHERE e.occurred_at >= u.created_at + interval '14 days' AND e.occurred_at < u.created_at + interval '21 days') AS week_2,
       count(DISTINCT e.user_id) FILTER (WHERE e.occurred_at >= u.created_at + interval '21 days' AND e.occurred_at < u.created_at + interval '28 days') AS week_3
FROM users u
LEFT JOIN events e ON e.user_id = u.user_id
GROUP BY 1
ORDER BY 1;

-- events 19, hard: What do users do first after they sign up?
-- keys: 0
SELECT name AS second_event, count(*) AS users
FROM (
  SELECT user_id, name, row_number() OVER (PARTITION BY user_id ORDER BY occurred_at, event_id) AS step
  FROM events
) numbered
WHERE step = 2
GROUP BY name
ORDER BY users DESC;

-- events 20, hard: Stickiness: daily active over monthly active users, for each month.
-- keys: 0
WITH daily AS (
  SELECT occurred_at::date AS day, count(DISTINCT user_id) AS dau FROM events GROUP BY 1
),
monthly AS (
  SELECT date_trunc('month', occurred_at)::date AS month, count(DISTINCT user_id) AS mau FROM events GROUP BY 1
)
SELECT m.month, m.mau, round(avg(d.dau), 1) AS avg_dau, round(avg(d.dau) / m.mau, 3) AS stickiness
FROM monthly m
JOIN daily d ON date_trunc('month', d.day)::date = m.month
GROUP BY m.month, m.mau
ORDER BY m.month;

-- events 21, hard: How long does it take from sign-up to the first project? Share of users within 1, 7, 30 days, and the median of days.
-- keys: none
WITH first_project AS (
  SELECT user_id, min(occurred_at) AS at FROM events WHERE name = 'project_created' GROUP BY user_id
)
SELECT count(*) AS users,
       avg(CASE WHEN f.at - u.created_at <= interval '1 day' THEN 1.0 ELSE 0 END) AS within_1d,
       avg(CASE WHEN f.at - u.created_at <= interval '7 days' THEN 1.0 ELSE 0 END) AS within_7d,
       avg(CASE WHEN f.at - u.created_at <= interval '30 days' THEN 1.0 ELSE 0 END) AS within_30d,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY extract(day FROM f.at - u.created_at)) AS median_days
FROM users u
LEFT JOIN first_project f ON f.user_id = u.user_id;
