"""A dbt project of ten models over the demo's university: staging views of people, tables of what is released of them."""

from __future__ import annotations

__all__ = ["PROJECT", "STEPS"]

_MARTS = '{{{{ config(materialized="table") }}}}\n'

PROJECT = {
    "dbt_project.yml": 'name: university\nversion: "1.0.0"\nprofile: p\nmodel-paths: ["models"]\nseed-paths: ["seeds"]\n',
    "profiles.yml": """
p: {{target: d, outputs: {{d: {{type: postgres, host: 127.0.0.1, port: {port}, user: {user}, password: "{password}",
  dbname: campus, schema: workspace, threads: 2}}}}}}
""",
    "models/university.yml": """
version: 2
sources:
  - name: campus
    database: campus
    schema: public
    tables:
      - name: student
        columns:
          - {{name: id, tests: [unique, not_null]}}
          - {{name: major, tests: [not_null, {{accepted_values: {{values: [Biology, CS, EE, History, Maths, ME]}}}}]}}
      - name: enrolment
        columns:
          - name: student_id
            tests: [not_null, {{relationships: {{to: "source('campus', 'student')", field: id}}}}]
      - name: loan
        columns:
          - name: student_id
            tests: [not_null, {{relationships: {{to: "source('campus', 'student')", field: id}}}}]
      - name: course
        columns: [{{name: id, tests: [unique, not_null]}}]
models:
  - name: stg_student
    description: One row per student; charged when it is aggregated.
    columns: [{{name: id, tests: [unique, not_null]}}]
  - name: majors
    description: Students of each major, with error bars.
    columns: [{{name: major, tests: [unique, not_null]}}, {{name: n, tests: [not_null]}}]
  - name: major_names
    columns: [{{name: major, tests: [{{relationships: {{to: ref('majors'), field: major}}}}]}}]
  - name: loans_by_month
    columns: [{{name: month, tests: [unique]}}]
""",
    "seeds/faculties.csv": "major,faculty\nBiology,Life\nCS,Engineering\nEE,Engineering\nHistory,Arts\nMaths,Arts\nME,Engineering\n",
    "models/stg_student.sql": 'select id, major, gpa, enrolled from {{{{ source("campus", "student") }}}}\n',
    "models/stg_loan.sql": 'select student_id, branch, loaned_on, fee from {{{{ source("campus", "loan") }}}}\n',
    "models/stg_course.sql": 'select id, title, department, credits from {{{{ source("campus", "course") }}}}\n',
    "models/majors.sql": _MARTS
    + "select major, count(*) as n, dp_low(count(*)) as n_low, dp_high(count(*)) as n_high\n"
    'from {{{{ ref("stg_student") }}}} group by major\n',
    "models/grades.sql": _MARTS + 'select major, avg(gpa) as gpa from {{{{ ref("stg_student") }}}} group by major\n',
    "models/loans_by_month.sql": _MARTS
    + "select date_trunc('month', loaned_on) as month, count(*) as n from {{{{ ref(\"stg_loan\") }}}} group by 1\n",
    "models/major_names.sql": 'select m.major, f.faculty, m.n from {{{{ ref("majors") }}}} m\n'
    'join {{{{ ref("faculties") }}}} f on f.major = m.major\n',
    "models/faculties_of_students.sql": _MARTS
    + 'select faculty, sum(n) as n from {{{{ ref("major_names") }}}} group by faculty\n',
    "models/courses.sql": _MARTS
    + "select department, count(*) as n, sum(credits) as credits from {{{{ ref(\"stg_course\") }}}} group by department\n",
    "models/loans_seen.sql": '{{{{ config(materialized="incremental", unique_key="month") }}}}\n'
    'select * from {{{{ ref("loans_by_month") }}}}\n'
    "{{% if is_incremental() %}} where month > (select max(month) from {{{{ this }}}}) {{% endif %}}\n",
}  # fmt: skip
STEPS = (
    ("debug",),
    ("seed",),
    ("run",),
    ("run",),
    ("run", "--full-refresh"),
    ("test",),
    ("docs", "generate"),
)
