-- hospital 01, simple: How many admissions per ward in 2025?
-- keys: 0
SELECT ward, count(*) AS admissions FROM admissions WHERE extract(year FROM admitted_at) = 2025 GROUP BY ward ORDER BY admissions DESC;

-- hospital 02, simple: How old are our patients on average today, by sex?
-- keys: 0
SELECT sex, count(*) AS patients, round(avg(extract(year FROM age(current_date, born))), 1) AS avg_age FROM patients GROUP BY sex;

-- hospital 03, simple: Mortality: the share of stays that ended in death, per department.
-- keys: 0
SELECT w.department, count(*) AS stays, round(100.0 * count(*) FILTER (WHERE a.outcome = 'died') / count(*), 2) AS mortality_pct
FROM admissions a
JOIN wards w ON w.ward = a.ward
WHERE a.outcome IS NOT NULL
GROUP BY w.department
ORDER BY mortality_pct DESC;

-- hospital 04, simple: Smokers, non-smokers and unknown.
-- keys: 0
SELECT CASE WHEN smoker THEN 'smoker' WHEN NOT smoker THEN 'non-smoker' ELSE 'unknown' END AS smoking, count(*) AS patients
FROM patients
GROUP BY 1;

-- hospital 05, simple: Emergency share per month.
-- keys: 0
SELECT date_trunc('month', admitted_at) AS month, avg(CASE WHEN emergency THEN 1 ELSE 0 END) AS emergency_share
FROM admissions
GROUP BY month
ORDER BY month;

-- hospital 06, simple: Mean and 95th percentile of CRP.
-- keys: none
SELECT avg(value) AS mean_crp, percentile_cont(0.95) WITHIN GROUP (ORDER BY value) AS p95 FROM lab_results WHERE test = 'CRP';

-- hospital 07, simple: From which areas (first two digits of the postcode) do patients come?
-- keys: 0
SELECT left(postcode, 2) AS area, count(*) AS patients FROM patients GROUP BY left(postcode, 2) ORDER BY 2 DESC;

-- hospital 08, medium: Average length of stay in days per ward, for stays that are over.
-- keys: 0
SELECT ward,
       count(*) AS stays,
       round(avg(extract(epoch FROM (discharged_at - admitted_at)) / 86400.0), 2) AS avg_days
FROM admissions
WHERE discharged_at IS NOT NULL
GROUP BY ward
ORDER BY avg_days DESC;

-- hospital 09, medium: The five most frequent diagnoses with their titles.
-- keys: 0, 1
SELECT a.diagnosis, i.title, count(*) AS stays
FROM admissions a
JOIN icd i ON i.code = a.diagnosis
GROUP BY a.diagnosis, i.title
ORDER BY stays DESC, a.diagnosis
LIMIT 5;

-- hospital 10, medium: Stays by ICD category (before the dot) and age group at admission.
-- keys: 0, 1
SELECT split_part(a.diagnosis, '.', 1) AS category,
       CASE
         WHEN age(a.admitted_at, p.born) < interval '18 years' THEN '0-17'
         WHEN age(a.admitted_at, p.born) < interval '65 years' THEN '18-64'
         ELSE '65+'
       END AS age_group,
       count(*) AS stays
FROM admissions a
JOIN patients p ON p.patient_id = a.patient_id
GROUP BY 1, 2
ORDER BY 1, 2;

-- hospital 11, medium: Cost by insurance and quarter.
-- keys: 0, 1
SELECT p.insurance, to_char(a.admitted_at, 'YYYY"-Q"Q') AS quarter, sum(a.cost) AS cost, round(avg(a.cost), 2) AS mean_cost
FROM admissions a
JOIN patients p USING (patient_id)
WHERE a.cost IS NOT NULL
GROUP BY 1, 2
ORDER BY 1, 2;

-- hospital 12, medium: How many patients were admitted once, twice, three times and so on?
-- keys: 0
WITH per_patient AS (SELECT patient_id, count(*) AS stays FROM admissions GROUP BY patient_id)
SELECT stays, count(*) AS patients, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS pct
FROM per_patient
GROUP BY stays
ORDER BY stays;

-- hospital 13, medium: Share of abnormal laboratory values per test.
-- keys: 0
SELECT test,
       count(value) AS measured,
       avg((CASE test
              WHEN 'CRP' THEN value > 5
              WHEN 'sodium' THEN value NOT BETWEEN 135 AND 145
              WHEN 'potassium' THEN value NOT BETWEEN 3.5 AND 5.1
              WHEN 'glucose' THEN value > 7.8
              ELSE value > 110
            END)::int) AS abnormal
FROM lab_results
WHERE value IS NOT NULL
GROUP BY test
ORDER BY abnormal DESC;

-- hospital 14, medium: Admissions by weekday and part of the day.
-- keys: 0, 1
SELECT to_char(admitted_at, 'Dy') AS weekday,
       CASE WHEN extract(hour FROM admitted_at) < 6 THEN 'night'
            WHEN extract(hour FROM admitted_at) < 12 THEN 'morning'
            WHEN extract(hour FROM admitted_at) < 18 THEN 'afternoon'
            ELSE 'evening' END AS part_of_day,
       count(*) AS admissions
FROM admissions
GROUP BY 1, 2, extract(isodow FROM admitted_at)
ORDER BY extract(isodow FROM admitted_at), 2;

-- hospital 15, hard: 30 day readmission rate per department.
-- keys: 0
WITH stays AS (
  SELECT patient_id, ward, discharged_at,
         lead(admitted_at) OVER (PARTITION BY patient_id ORDER BY admitted_at) AS next_admission
  FROM admissions
)
SELECT w.department,
       count(*) AS discharges,
       count(*) FILTER (WHERE s.next_admission > s.discharged_at AND s.next_admission <= s.discharged_at + interval '30 days') AS readmitted,
       round(100.0 * count(*) FILTER (WHERE s.next_admission > s.discharged_at AND s.next_admission <= s.discharged_at + interval '30 days') / count(*), 2) AS rate
FROM stays s
JOIN wards w USING (ward)
WHERE s.discharged_at IS NOT NULL
GROUP BY w.department
ORDER BY rate DESC;

-- hospital 16, hard: Bed occupancy on each day of November 2025, per ward.
-- keys: 0, 1
SELECT c.day, w.ward, count(a.admission_id) AS occupied, round(100.0 * count(a.admission_id) / w.beds, 1) AS occupancy_pct
FROM calendar c
CROSS JOIN wards w
LEFT JOIN admissions a
       ON a.ward = w.ward
      AND a.admitted_at < c.day + 1
      AND (a.discharged_at >= c.day OR a.discharged_at IS NULL)
WHERE c.day BETWEEN DATE '2025-11-01' AND DATE '2025-11-30'
GROUP BY c.day, w.ward, w.beds
ORDER BY c.day, w.ward;

-- hospital 17, hard: Did the CRP fall during the stay? First and last CRP of each stay with at least two: the average change.
-- keys: none
WITH crp AS (
  SELECT admission_id, value,
         row_number() OVER (PARTITION BY admission_id ORDER BY taken_at) AS first_no,
         row_number() OVER (PARTITION BY admission_id ORDER BY taken_at DESC) AS last_no,
         count(*) OVER (PARTITION BY admission_id) AS n
  FROM lab_results
  WHERE test = 'CRP' AND value IS NOT NULL
)
SELECT count(*) AS stays, round(avg(l.value - f.value), 2) AS mean_change
FROM crp f
JOIN crp l ON l.admission_id = f.admission_id AND l.last_no = 1
WHERE f.first_no = 1 AND f.n >= 2;

-- hospital 18, hard: Which share of diabetics (ever coded E11) also had a heart attack (I21)?
-- keys: none
SELECT count(*) AS diabetics,
       sum(CASE WHEN EXISTS (SELECT 1 FROM admissions h WHERE h.patient_id = p.patient_id AND h.diagnosis LIKE 'I21%') THEN 1 ELSE 0 END) AS with_infarction
FROM patients p
WHERE p.patient_id IN (SELECT patient_id FROM admissions WHERE diagnosis ~ '^E11');

-- hospital 19, hard: Cost in deciles of stays, with the limits of each decile.
-- keys: 0
SELECT decile, count(*) AS stays, min(cost) AS from_cost, max(cost) AS to_cost, sum(cost) AS total
FROM (SELECT cost, ntile(10) OVER (ORDER BY cost) AS decile FROM admissions WHERE cost IS NOT NULL) d
GROUP BY decile
ORDER BY decile;

-- hospital 20, hard: Admissions per month against the same month of the year before.
-- keys: 0
WITH monthly AS (
  SELECT c.month_start AS month, count(a.admission_id) AS admissions
  FROM calendar c
  LEFT JOIN admissions a ON a.admitted_at >= c.day AND a.admitted_at < c.day + interval '1 day'
  GROUP BY c.month_start
)
SELECT this.month, this.admissions, before.admissions AS year_before,
       this.admissions - before.admissions AS change
FROM monthly this
JOIN monthly before ON before.month = this.month - interval '1 year'
ORDER BY this.month;

-- hospital 21, hard: The most recent stay of each patient: how did it end, by insurance, with totals?
-- keys: 0, 1
SELECT insurance, outcome, count(*) AS patients
FROM (
  SELECT DISTINCT ON (a.patient_id) a.patient_id, p.insurance, coalesce(a.outcome, 'still here') AS outcome
  FROM admissions a
  JOIN patients p ON p.patient_id = a.patient_id
  ORDER BY a.patient_id, a.admitted_at DESC
) latest
GROUP BY GROUPING SETS ((insurance, outcome), (insurance), ())
ORDER BY insurance NULLS LAST, outcome NULLS LAST;
