-- shop 01, simple: How many customers do we have in each country?
-- keys: 0
SELECT country, count(*) AS customers FROM customers GROUP BY country ORDER BY customers DESC;

-- shop 02, simple: What was our revenue per month, without cancelled orders?
-- keys: 0
SELECT to_char(ordered_at, 'YYYY-MM') AS month, sum(total) AS revenue
FROM orders
WHERE status <> 'cancelled'
GROUP BY 1
ORDER BY 1;

-- shop 03, simple: What is the average and the median order value?
-- keys: none
SELECT round(avg(total), 2) AS average, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) AS median FROM orders;

-- shop 04, simple: What share of orders used a coupon?
-- keys: none
SELECT round(100.0 * count(coupon) / count(*), 1) AS pct_with_coupon FROM orders;

-- shop 05, simple: Which weekdays sell best?
-- keys: 0, 1
SELECT extract(isodow FROM ordered_at) AS weekday_no, trim(to_char(ordered_at, 'Day')) AS weekday, count(*) AS orders, sum(total) AS revenue
FROM orders
GROUP BY 1, 2
ORDER BY 1;

-- shop 06, simple: How many customers use each mail provider? Top 10.
-- keys: 0
SELECT split_part(email, '@', 2) AS provider, count(*) AS customers
FROM customers
GROUP BY 1
ORDER BY 2 DESC
LIMIT 10;

-- shop 07, simple: How many orders, buyers and orders per buyer did we have in 2025?
-- keys: none
SELECT count(*) AS orders,
       count(DISTINCT customer_id) AS buyers,
       round(count(*)::numeric / count(DISTINCT customer_id), 2) AS orders_per_buyer
FROM orders
WHERE ordered_at >= '2025-01-01' AND ordered_at < '2026-01-01';

-- shop 08, medium: Revenue and units per product category, best first.
-- keys: 0
SELECT p.category, sum(i.quantity) AS units, sum(i.quantity * i.unit_price) AS revenue
FROM order_items i
JOIN products p ON p.product_id = i.product_id
JOIN orders o USING (order_id)
WHERE o.status IN ('paid', 'shipped', 'delivered')
GROUP BY p.category
ORDER BY revenue DESC;

-- shop 09, medium: Orders per age band of the buyer.
-- keys: 0
SELECT CASE
         WHEN c.birth_date IS NULL THEN 'unknown'
         WHEN date_part('year', age(o.ordered_at, c.birth_date)) < 25 THEN 'under 25'
         WHEN date_part('year', age(o.ordered_at, c.birth_date)) < 40 THEN '25-39'
         WHEN date_part('year', age(o.ordered_at, c.birth_date)) < 60 THEN '40-59'
         ELSE '60+'
       END AS age_band,
       count(*) AS orders,
       round(avg(o.total), 2) AS avg_order
FROM orders o
JOIN customers c ON c.customer_id = o.customer_id
GROUP BY 1
ORDER BY 1;

-- shop 10, medium: Share of each sales region in revenue.
-- keys: 0
SELECT k.region,
       sum(o.total) AS revenue,
       round(100 * sum(o.total) / sum(sum(o.total)) OVER (), 1) AS pct
FROM orders o
JOIN customers c USING (customer_id)
JOIN countries k ON k.code = c.country
GROUP BY k.region
ORDER BY pct DESC;

-- shop 11, medium: Revenue month over month, with the growth in percent.
-- keys: 0
WITH monthly AS (
  SELECT date_trunc('month', ordered_at)::date AS month, sum(total) AS revenue
  FROM orders
  WHERE status NOT IN ('cancelled', 'refunded')
  GROUP BY 1
)
SELECT month,
       revenue,
       lag(revenue) OVER (ORDER BY month) AS previous,
       round(100.0 * (revenue - lag(revenue) OVER (ORDER BY month)) / nullif(lag(revenue) OVER (ORDER BY month), 0), 1) AS growth_pct
FROM monthly
ORDER BY month;

-- shop 12, medium: How many customers placed 1, 2, 3, 4, and 5 or more orders?
-- keys: 0
SELECT least(n, 5) AS orders_placed, count(*) AS customers
FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) t
GROUP BY 1
ORDER BY 1;

-- shop 13, medium: For each acquisition channel: customers, buyers, conversion, revenue per customer.
-- keys: 0
SELECT c.channel,
       count(DISTINCT c.customer_id) AS customers,
       count(DISTINCT o.customer_id) AS buyers,
       round(100.0 * count(DISTINCT o.customer_id) / count(DISTINCT c.customer_id), 1) AS conversion_pct,
       round(coalesce(sum(o.total), 0) / count(DISTINCT c.customer_id), 2) AS revenue_per_customer
FROM customers c
LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.status <> 'cancelled'
GROUP BY c.channel
ORDER BY c.channel;

-- shop 14, medium: Cancellation rate by country and coupon family (the letters of the code), only where there are 50 orders or more.
-- keys: 0, 1
SELECT c.country,
       coalesce(regexp_replace(o.coupon, '[^A-Z]', '', 'g'), 'no coupon') AS coupon_family,
       count(*) AS orders,
       avg((o.status = 'cancelled')::int) AS cancel_rate
FROM orders o
JOIN customers c USING (customer_id)
GROUP BY 1, 2
HAVING count(*) >= 50
ORDER BY 4 DESC, 1, 2;

-- shop 15, hard: Orders on every day of December, days without orders too, with a 7 day rolling average.
-- keys: 0
SELECT d.day,
       count(o.order_id) AS orders,
       round(avg(count(o.order_id)) OVER (ORDER BY d.day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW), 2) AS rolling_7d
FROM calendar d
LEFT JOIN orders o ON o.ordered_at::date = d.day
WHERE d.day BETWEEN '2025-12-01' AND '2025-12-31'
GROUP BY d.day
ORDER BY d.day;

-- shop 16, hard: Retention of customers by the month of the first order: how many order again 0, 1, 2, ... months later?
-- keys: 0, 1
WITH first_orders AS (
  SELECT customer_id, date_trunc('month', min(ordered_at)) AS cohort
  FROM orders
  GROUP BY customer_id
),
activity AS (
  SELECT DISTINCT customer_id, date_trunc('month', ordered_at) AS month
  FROM orders
)
SELECT f.cohort,
       (extract(year FROM a.month) - extract(year FROM f.cohort)) * 12 + extract(month FROM a.month) - extract(month FROM f.cohort) AS months_later,
       count(DISTINCT a.customer_id) AS customers
FROM first_orders f
JOIN activity a USING (customer_id)
GROUP BY 1, 2
ORDER BY 1, 2;

-- shop 17, hard: The three best selling products of each category by revenue.
-- keys: 0, 1
SELECT category, name, revenue, place
FROM (
  SELECT p.category, p.name, sum(i.quantity * i.unit_price) AS revenue,
         row_number() OVER (PARTITION BY p.category ORDER BY sum(i.quantity * i.unit_price) DESC) AS place
  FROM order_items i
  JOIN products p USING (product_id)
  GROUP BY p.category, p.name
) ranked
WHERE place <= 3
ORDER BY category, place;

-- shop 18, hard: How many days pass between a customer's orders, on average and at the median?
-- keys: none
WITH gaps AS (
  SELECT customer_id,
         ordered_at::date - lag(ordered_at::date) OVER (PARTITION BY customer_id ORDER BY ordered_at) AS days
  FROM orders
)
SELECT round(avg(days), 1) AS avg_days, percentile_cont(0.5) WITHIN GROUP (ORDER BY days) AS median_days
FROM gaps
WHERE days IS NOT NULL;

-- shop 19, hard: Revenue by country and status with subtotals and a grand total.
-- keys: 0, 1
SELECT coalesce(c.country, 'ALL') AS country, coalesce(o.status, 'ALL') AS status, count(*) AS orders, sum(o.total) AS revenue
FROM orders o
JOIN customers c USING (customer_id)
GROUP BY ROLLUP (c.country, o.status)
ORDER BY 1, 2;

-- shop 20, hard: Quartiles of customers by what they spent in 2025: how much does each quartile spend, and which share of the revenue is that?
-- keys: 0
WITH spend AS (
  SELECT customer_id, sum(total) AS spent FROM orders WHERE status <> 'cancelled' GROUP BY customer_id
),
ranked AS (
  SELECT spent, ntile(4) OVER (ORDER BY spent DESC) AS quartile FROM spend
)
SELECT quartile, count(*) AS customers, sum(spent) AS revenue,
       round(100 * sum(spent) / sum(sum(spent)) OVER (), 1) AS share_pct
FROM ranked
GROUP BY quartile
ORDER BY quartile;

-- shop 21, hard: With what did customers start, and how large was the first order? By coupon of the first order.
-- keys: 0
SELECT coalesce(coupon, '(none)') AS first_coupon, count(*) AS customers, round(avg(total), 2) AS avg_first_order
FROM (
  SELECT DISTINCT ON (customer_id) customer_id, coupon, total
  FROM orders
  ORDER BY customer_id, ordered_at
) firsts
GROUP BY 1
ORDER BY 2 DESC;
