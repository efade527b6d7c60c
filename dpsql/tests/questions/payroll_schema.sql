CREATE TABLE departments (
    department_id integer PRIMARY KEY,
    name text NOT NULL,
    cost_centre text NOT NULL
);
CREATE TABLE grades (
    grade text PRIMARY KEY,
    level integer NOT NULL,
    min_pay numeric(8,2) NOT NULL,
    max_pay numeric(8,2) NOT NULL
);
CREATE TABLE months (
    month date PRIMARY KEY,
    working_days integer NOT NULL
);
CREATE TABLE employees (
    employee_id integer PRIMARY KEY,
    full_name text NOT NULL,
    gender text NOT NULL,
    born date NOT NULL,
    hired_on date NOT NULL,
    left_on date,
    department_id integer NOT NULL REFERENCES departments (department_id),
    grade text NOT NULL REFERENCES grades (grade),
    site text NOT NULL,
    fte numeric(3,2) NOT NULL
);
CREATE TABLE payslips (
    payslip_id integer PRIMARY KEY,
    employee_id integer NOT NULL REFERENCES employees (employee_id),
    month date NOT NULL,
    gross numeric(9,2) NOT NULL,
    bonus numeric(9,2),
    overtime_hours numeric(5,2) NOT NULL,
    tax numeric(9,2) NOT NULL
);
CREATE TABLE absences (
    absence_id integer PRIMARY KEY,
    employee_id integer NOT NULL REFERENCES employees (employee_id),
    kind text NOT NULL,
    starts_on date NOT NULL,
    ends_on date NOT NULL,
    note text
);
