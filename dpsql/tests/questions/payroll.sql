-- payroll 01, simple: Current headcount per department.
-- keys: 0
SELECT d.name, count(*) AS headcount
FROM employees e
JOIN departments d USING (department_id)
WHERE e.left_on IS NULL
GROUP BY d.name
ORDER BY headcount DESC;

-- payroll 02, simple: The average gross pay per month.
-- keys: 0
SELECT month, round(avg(gross), 2) AS avg_gross, count(*) AS payslips FROM payslips GROUP BY month ORDER BY month;

-- payroll 03, simple: Full-time equivalents per site.
-- keys: 0
SELECT site, sum(fte) AS fte, count(*) AS people FROM employees WHERE left_on IS NULL GROUP BY site;

-- payroll 04, simple: What did we pay in bonuses in total, and to how many people?
-- keys: none
SELECT sum(bonus) AS bonuses, count(DISTINCT employee_id) AS people FROM payslips WHERE bonus > 0;

-- payroll 05, simple: The gender ratio in each grade.
-- keys: 0
SELECT grade,
       round(100.0 * sum(CASE WHEN gender = 'female' THEN 1 ELSE 0 END) / count(*), 1) AS pct_women
FROM employees
GROUP BY grade
ORDER BY grade;

-- payroll 06, simple: Hires per year.
-- keys: 0
SELECT date_part('year', hired_on) AS year, count(*) AS hires FROM employees GROUP BY 1 ORDER BY 1 DESC;

-- payroll 07, simple: Who earns most? The ten highest paid people in December.
-- keys: none
SELECT e.full_name, p.gross
FROM payslips p
JOIN employees e ON e.employee_id = p.employee_id
WHERE p.month = '2025-12-01'
ORDER BY p.gross DESC
LIMIT 10;

-- payroll 08, medium: The gender pay gap at the median, full-time staff only, in December.
-- keys: 0
SELECT e.gender, percentile_cont(0.5) WITHIN GROUP (ORDER BY p.gross) AS median_gross, count(*) AS n
FROM payslips p
JOIN employees e ON e.employee_id = p.employee_id
WHERE p.month = DATE '2025-12-01' AND e.fte = 1
GROUP BY e.gender
ORDER BY median_gross DESC;

-- payroll 09, medium: Sick days per head and department in 2025.
-- keys: 0
SELECT d.name AS department,
       sum(a.ends_on - a.starts_on + 1) AS sick_days,
       count(DISTINCT a.employee_id) AS people_sick,
       round(avg(a.ends_on - a.starts_on + 1), 1) AS avg_length
FROM absences a
JOIN employees e ON e.employee_id = a.employee_id
JOIN departments d ON d.department_id = e.department_id
WHERE a.kind = 'sick' AND a.starts_on BETWEEN '2025-01-01' AND '2025-12-31'
GROUP BY d.name
ORDER BY sick_days DESC;

-- payroll 10, medium: Tenure in bands.
-- keys: 0, 1
SELECT CASE
         WHEN age(DATE '2025-12-31', hired_on) < INTERVAL '1 year' THEN 1
         WHEN age(DATE '2025-12-31', hired_on) < INTERVAL '3 years' THEN 2
         WHEN age(DATE '2025-12-31', hired_on) < INTERVAL '10 years' THEN 3
         ELSE 4
       END AS sort,
       CASE
         WHEN age(DATE '2025-12-31', hired_on) < INTERVAL '1 year' THEN 'under 1 year'
         WHEN age(DATE '2025-12-31', hired_on) < INTERVAL '3 years' THEN '1-3 years'
         WHEN age(DATE '2025-12-31', hired_on) < INTERVAL '10 years' THEN '3-10 years'
         ELSE '10 years and more'
       END AS tenure,
       count(*) AS people
FROM employees
WHERE left_on IS NULL
GROUP BY 1, 2
ORDER BY 1;

-- payroll 11, medium: Overtime hours per quarter and site, and what they cost at the hourly rate of gross / 160.
-- keys: 0, 1
SELECT 'Q' || extract(quarter FROM p.month) AS quarter, e.site,
       sum(p.overtime_hours) AS hours,
       round(sum(p.overtime_hours * p.gross / 160), 0) AS cost
FROM payslips p
JOIN employees e USING (employee_id)
GROUP BY 1, 2
ORDER BY 1, 2;

-- payroll 12, medium: The share of staff who got a bonus in December, by grade, with the average bonus of those.
-- keys: 0
SELECT g.grade, g.level,
       count(*) AS staff,
       round(100.0 * count(p.bonus) / count(*), 1) AS pct_bonus,
       round(avg(p.bonus), 0) AS avg_bonus
FROM payslips p
JOIN employees e ON e.employee_id = p.employee_id
JOIN grades g ON g.grade = e.grade
WHERE p.month = '2025-12-01'
GROUP BY g.grade, g.level
ORDER BY g.level;

-- payroll 13, medium: Leavers and turnover per department.
-- keys: 0
SELECT d.name,
       count(*) FILTER (WHERE e.left_on IS NOT NULL AND e.left_on >= '2025-01-01') AS leavers,
       count(*) FILTER (WHERE e.left_on IS NULL OR e.left_on >= '2025-01-01') AS staff,
       round(100.0 * count(*) FILTER (WHERE e.left_on >= '2025-01-01') / nullif(count(*) FILTER (WHERE e.left_on IS NULL OR e.left_on >= '2025-01-01'), 0), 1) AS turnover_pct
FROM employees e
JOIN departments d ON d.department_id = e.department_id
GROUP BY d.name
ORDER BY turnover_pct DESC NULLS LAST;

-- payroll 14, medium: The generations at work.
-- keys: 0
SELECT CASE
         WHEN born < '1965-01-01' THEN 'Boomers'
         WHEN born < '1981-01-01' THEN 'Gen X'
         WHEN born < '1997-01-01' THEN 'Millennials'
         ELSE 'Gen Z'
       END AS generation,
       count(*) AS people,
       round(avg(2025 - extract(year FROM born)), 1) AS avg_age
FROM employees
WHERE left_on IS NULL
GROUP BY 1
HAVING count(*) >= 10
ORDER BY avg_age DESC;

-- payroll 15, hard: Year to date payroll cost: per month and cumulative, with the month's share of the year.
-- keys: 0
SELECT to_char(month, 'Month') AS month_name,
       extract(month FROM month) AS month_no,
       sum(gross + coalesce(bonus, 0)) AS cost,
       sum(sum(gross + coalesce(bonus, 0))) OVER (ORDER BY extract(month FROM month)) AS cost_ytd,
       round(100 * sum(gross + coalesce(bonus, 0)) / sum(sum(gross + coalesce(bonus, 0))) OVER (), 1) AS pct_of_year
FROM payslips
WHERE month >= '2025-01-01' AND month < '2026-01-01'
GROUP BY 1, 2
ORDER BY 2;

-- payroll 16, hard: Where in the pay range of the grade do people sit (compa-ratio), full-timers in December?
-- keys: 0
SELECT g.grade,
       round(avg(p.gross / ((g.min_pay + g.max_pay) / 2)), 3) AS compa_ratio,
       count(*) FILTER (WHERE p.gross > g.max_pay) AS above_range,
       count(*) FILTER (WHERE p.gross < g.min_pay) AS below_range
FROM payslips p
JOIN employees e ON e.employee_id = p.employee_id
JOIN grades g ON g.grade = e.grade
WHERE p.month = DATE '2025-12-01' AND e.fte = 1.00
GROUP BY g.grade
ORDER BY g.grade;

-- payroll 17, hard: Whose pay rose between June and July? Average raise in percent, by department.
-- keys: 0
SELECT d.name,
       count(*) AS people,
       round(avg(100 * (j.gross - i.gross) / i.gross), 2) AS avg_raise_pct
FROM payslips i
JOIN payslips j ON j.employee_id = i.employee_id AND j.month = '2025-07-01'
JOIN employees e ON e.employee_id = i.employee_id
JOIN departments d ON d.department_id = e.department_id
WHERE i.month = '2025-06-01' AND i.gross > 0
GROUP BY d.name
ORDER BY avg_raise_pct DESC;

-- payroll 18, hard: Annual pay per employee in deciles, and the ratio of the top to the bottom decile.
-- keys: none
WITH annual AS (
  SELECT employee_id, sum(gross + coalesce(bonus, 0)) AS pay
  FROM payslips
  GROUP BY employee_id
  HAVING count(*) = 12
)
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY pay) AS p90,
       percentile_cont(0.1) WITHIN GROUP (ORDER BY pay) AS p10,
       round((percentile_cont(0.9) WITHIN GROUP (ORDER BY pay) / percentile_cont(0.1) WITHIN GROUP (ORDER BY pay))::numeric, 2) AS ratio
FROM annual;

-- payroll 19, hard: How many people were employed at the end of each month of 2025?
-- keys: 0
SELECT m.month, count(e.employee_id) AS employed
FROM months m
LEFT JOIN employees e
  ON e.hired_on < m.month + interval '1 month'
 AND (e.left_on IS NULL OR e.left_on >= m.month + interval '1 month')
GROUP BY m.month
ORDER BY m.month;

-- payroll 20, hard: The Bradford factor (spells squared times days): how many employees score 0, up to 50, up to 200, and more?
-- keys: 0
WITH sick AS (
  SELECT e.employee_id,
         count(a.absence_id) AS spells,
         coalesce(sum(a.ends_on - a.starts_on + 1), 0) AS days
  FROM employees e
  LEFT JOIN absences a ON a.employee_id = e.employee_id AND a.kind = 'sick'
  GROUP BY e.employee_id
)
SELECT CASE WHEN spells * spells * days = 0 THEN '0'
            WHEN spells * spells * days <= 50 THEN '1-50'
            WHEN spells * spells * days <= 200 THEN '51-200'
            ELSE 'over 200' END AS bradford,
       count(*) AS employees
FROM sick
GROUP BY 1
ORDER BY 1;

-- payroll 21, hard: Headcount, by site, grade and both, with totals labelled.
-- keys: 0, 1
SELECT CASE WHEN grouping(site) = 1 THEN 'All sites' ELSE site END AS site,
       CASE WHEN grouping(grade) = 1 THEN 'All grades' ELSE grade END AS grade,
       count(*) AS people,
       round(avg(fte), 2) AS avg_fte
FROM employees
WHERE left_on IS NULL
GROUP BY CUBE (site, grade)
ORDER BY grouping(site), 1, grouping(grade), 2;
