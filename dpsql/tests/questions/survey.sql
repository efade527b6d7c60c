-- survey 01, simple: How many people answered, and how many finished?
-- keys: none
SELECT count(*) AS started, count(submitted_at) AS finished, round(100.0 * count(submitted_at) / count(*), 1) AS completion_rate FROM respondents;

-- survey 02, simple: Respondents by gender and education.
-- keys: 0, 1
SELECT coalesce(gender, 'not said') AS gender, education, count(*) FROM respondents GROUP BY 1, 2 ORDER BY 1, 2;

-- survey 03, simple: Mean, standard deviation, minimum and maximum of age.
-- keys: none
SELECT avg(age) AS mean_age, stddev(age) AS sd_age, min(age) AS youngest, max(age) AS oldest FROM respondents;

-- survey 04, simple: The distribution of the NPS answers.
-- keys: 0
SELECT nps, count(*) AS n FROM respondents WHERE nps IS NOT NULL GROUP BY nps ORDER BY nps;

-- survey 05, simple: Net promoter score in each region.
-- keys: 0
SELECT region,
       round(100.0 * (count(*) FILTER (WHERE nps >= 9) - count(*) FILTER (WHERE nps <= 6)) / count(nps)) AS nps
FROM respondents
GROUP BY region
ORDER BY nps DESC;

-- survey 06, simple: Ages in bands of ten years.
-- keys: 0
SELECT concat(floor(age / 10) * 10, 's') AS decade, count(*) AS n FROM respondents GROUP BY 1 ORDER BY 1;

-- survey 07, simple: Median income by employment.
-- keys: 0
SELECT employment, percentile_disc(0.5) WITHIN GROUP (ORDER BY income) AS median_income, count(income) AS answered
FROM respondents
GROUP BY employment;

-- survey 08, medium: The weighted share of each education level.
-- keys: 0
SELECT education,
       sum(weight) AS weighted,
       round(100 * sum(weight) / sum(sum(weight)) OVER (), 1) AS weighted_pct
FROM respondents
WHERE submitted_at IS NOT NULL
GROUP BY education
ORDER BY weighted_pct DESC;

-- survey 09, medium: Mean score per question, with its wording, and the share of top-two answers.
-- keys: 0, 1
SELECT q.question_id, q.wording, count(a.score) AS n, round(avg(a.score), 2) AS mean_score,
       round(100.0 * sum((a.score >= 4)::int) / count(a.score), 1) AS top2
FROM questions q
JOIN answers a ON a.question_id = q.question_id
GROUP BY q.question_id, q.wording
ORDER BY q.question_id;

-- survey 10, medium: How long did it take to fill it in, in minutes, per device?
-- keys: 0
SELECT device,
       round(avg(extract(epoch FROM submitted_at - started_at) / 60)::numeric, 1) AS mean_minutes,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM submitted_at - started_at) / 60) AS median_minutes
FROM respondents
WHERE submitted_at IS NOT NULL
GROUP BY device;

-- survey 11, medium: Remarks that mention the price: how many, and how satisfied are those people?
-- keys: 0
SELECT remarks ~* '(price|expensive)' AS mentions_price, count(*) AS n, avg(nps) AS mean_nps
FROM respondents
WHERE remarks IS NOT NULL AND trim(remarks) <> ''
GROUP BY 1;

-- survey 12, medium: Response by region against its population: respondents per million.
-- keys: 0, 1
SELECT r.region, r.part, count(*) AS respondents, round(count(*) * 1000000.0 / r.population, 1) AS per_million
FROM respondents p
JOIN regions r USING (region)
GROUP BY r.region, r.part, r.population
ORDER BY per_million DESC;

-- survey 13, medium: A cross table of promoters, passives and detractors by age group.
-- keys: 0
SELECT CASE WHEN age < 30 THEN '18-29' WHEN age < 45 THEN '30-44' WHEN age < 60 THEN '45-59' ELSE '60+' END AS age_group,
       sum(CASE WHEN nps >= 9 THEN 1 ELSE 0 END) AS promoters,
       sum(CASE WHEN nps IN (7, 8) THEN 1 ELSE 0 END) AS passives,
       sum(CASE WHEN nps <= 6 THEN 1 ELSE 0 END) AS detractors
FROM respondents
GROUP BY 1
ORDER BY min(age);

-- survey 14, medium: How many languages do people speak?
-- keys: 0
SELECT array_length(string_to_array(languages, ';'), 1) AS spoken, count(*) AS people
FROM respondents
GROUP BY 1
ORDER BY 1;

-- survey 15, medium: Per capita income of the household in quintile limits.
-- keys: none
SELECT percentile_cont(ARRAY[0.2, 0.4, 0.6, 0.8]) WITHIN GROUP (ORDER BY income::numeric / household_size) AS quintiles
FROM respondents
WHERE income > 0;

-- survey 16, hard: Which language is spoken by how many people?
-- keys: 0
SELECT language, count(*) AS people
FROM respondents
CROSS JOIN LATERAL unnest(string_to_array(languages, ';')) AS l(language)
GROUP BY language
ORDER BY people DESC;

-- survey 17, hard: Mean score per section for promoters and for detractors, and the difference.
-- keys: 0
SELECT q.section,
       round(avg(a.score) FILTER (WHERE r.nps >= 9), 2) AS promoters,
       round(avg(a.score) FILTER (WHERE r.nps <= 6), 2) AS detractors,
       round(avg(a.score) FILTER (WHERE r.nps >= 9) - avg(a.score) FILTER (WHERE r.nps <= 6), 2) AS gap
FROM answers a
JOIN respondents r ON r.respondent_id = a.respondent_id
JOIN questions q ON q.question_id = a.question_id
GROUP BY q.section
ORDER BY gap DESC;

-- survey 18, hard: Are income and satisfaction related? Correlation and slope, by gender.
-- keys: 0
SELECT gender, corr(income, nps) AS r, regr_slope(nps, income / 1000.0) AS slope_per_thousand, regr_count(nps, income) AS n
FROM respondents
GROUP BY gender
HAVING count(*) > 100;

-- survey 19, hard: Satisfaction of each respondent as the mean of all answers: the distribution, and how it differs by region from the overall mean.
-- keys: 0
WITH person AS (
  SELECT respondent_id, avg(score) AS satisfaction FROM answers GROUP BY respondent_id HAVING count(score) >= 5
)
SELECT r.region,
       count(*) AS people,
       round(avg(p.satisfaction), 2) AS mean_satisfaction,
       round(avg(p.satisfaction) - (SELECT avg(satisfaction) FROM person), 3) AS difference
FROM person p
JOIN respondents r USING (respondent_id)
GROUP BY r.region
ORDER BY difference DESC;

-- survey 20, hard: Do people who rate question 4 low also rate question 5 low? The cross table of both.
-- keys: 0, 1
SELECT a.score AS q4, b.score AS q5, count(*) AS n,
       round(100.0 * count(*) / sum(count(*)) OVER (PARTITION BY a.score), 1) AS row_pct
FROM answers a
JOIN answers b ON b.respondent_id = a.respondent_id AND b.question_id = 5
WHERE a.question_id = 4 AND a.score IS NOT NULL AND b.score IS NOT NULL
GROUP BY 1, 2
ORDER BY 1, 2;

-- survey 21, hard: Responses day by day with the running total and the share of the final number.
-- keys: 0
SELECT submitted_at::date AS day,
       count(*) AS responses,
       sum(count(*)) OVER (ORDER BY submitted_at::date) AS cumulative,
       round(100.0 * sum(count(*)) OVER (ORDER BY submitted_at::date) / sum(count(*)) OVER (), 1) AS cumulative_pct
FROM respondents
WHERE submitted_at IS NOT NULL
GROUP BY submitted_at::date
ORDER BY day;
