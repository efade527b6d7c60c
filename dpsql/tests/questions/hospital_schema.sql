CREATE TABLE wards (
    ward text PRIMARY KEY,
    department text NOT NULL,
    beds integer NOT NULL
);
CREATE TABLE icd (
    code text PRIMARY KEY,
    chapter text NOT NULL,
    title text NOT NULL
);
CREATE TABLE calendar (
    day date PRIMARY KEY,
    month_start date NOT NULL
);
CREATE TABLE patients (
    patient_id integer PRIMARY KEY,
    sex text NOT NULL,
    born date NOT NULL,
    postcode text NOT NULL,
    insurance text NOT NULL,
    smoker boolean
);
CREATE TABLE admissions (
    admission_id integer PRIMARY KEY,
    patient_id integer NOT NULL REFERENCES patients (patient_id),
    ward text NOT NULL REFERENCES wards (ward),
    diagnosis text NOT NULL REFERENCES icd (code),
    admitted_at timestamp NOT NULL,
    discharged_at timestamp,
    emergency boolean NOT NULL,
    outcome text,
    cost numeric(10,2)
);
CREATE TABLE lab_results (
    lab_id integer PRIMARY KEY,
    admission_id integer NOT NULL REFERENCES admissions (admission_id),
    test text NOT NULL,
    value numeric(7,2),
    taken_at timestamp NOT NULL
);
