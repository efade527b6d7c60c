-- market 01, simple: The sellers' revenue by month.
-- keys: 0
SELECT date_trunc('month', o.ordered_on)::date AS month, sum(o.amount) AS revenue, count(*) AS orders
FROM orders o
JOIN items i ON o.item_id = i.item_id
GROUP BY 1
ORDER BY 1;

-- market 02, simple: The average order by category.
-- keys: 0
SELECT i.category, count(*) AS orders, round(avg(o.amount), 2) AS average
FROM orders o
JOIN items i USING (item_id)
GROUP BY i.category
ORDER BY i.category;

-- market 03, medium: Where does money go? Revenue by the buyer's and the seller's city.
-- keys: 0, 1
SELECT b.city AS buyers, s.city AS sellers, sum(o.amount) AS revenue
FROM orders o
JOIN items i ON i.item_id = o.item_id
JOIN people b ON b.person_id = o.buyer_id
JOIN people s ON s.person_id = i.seller_id
GROUP BY b.city, s.city
ORDER BY revenue DESC;

-- market 04, medium: Stars by category, and how many orders were reviewed.
-- keys: 0
SELECT i.category, count(*) AS reviews, avg(r.stars) AS stars
FROM reviews r
JOIN orders o ON o.order_id = r.order_id
JOIN items i ON i.item_id = o.item_id
GROUP BY i.category
ORDER BY stars DESC;

-- market 05, medium: The ten sellers with most revenue.
-- keys: none
SELECT s.name, sum(o.amount) AS revenue
FROM orders o
JOIN items i ON i.item_id = o.item_id
JOIN people s ON s.person_id = i.seller_id
GROUP BY s.person_id, s.name
ORDER BY revenue DESC
LIMIT 10;

-- market 06, medium: Which share of orders is shipped within three days, by the seller's city?
-- keys: 0
SELECT s.city, avg(CASE WHEN o.shipped_on - o.ordered_on <= 3 THEN 1.0 ELSE 0 END) AS within_three_days
FROM orders o
JOIN items i ON i.item_id = o.item_id
JOIN people s ON s.person_id = i.seller_id
GROUP BY s.city
ORDER BY s.city;

-- market 07, hard: How many buyers came back to the same seller?
-- keys: none
SELECT count(DISTINCT buyer_id) AS came_back
FROM (
  SELECT o.buyer_id, i.seller_id
  FROM orders o
  JOIN items i ON i.item_id = o.item_id
  GROUP BY o.buyer_id, i.seller_id
  HAVING count(*) > 1
) x;
