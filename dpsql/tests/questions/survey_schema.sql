CREATE TABLE regions (
    region text PRIMARY KEY,
    part text NOT NULL,
    population integer NOT NULL
);
CREATE TABLE questions (
    question_id integer PRIMARY KEY,
    section text NOT NULL,
    wording text NOT NULL
);
CREATE TABLE respondents (
    respondent_id integer PRIMARY KEY,
    started_at timestamp NOT NULL,
    submitted_at timestamp,
    age integer NOT NULL,
    gender text,
    region text NOT NULL REFERENCES regions (region),
    education text NOT NULL,
    employment text NOT NULL,
    income integer,
    household_size integer NOT NULL,
    nps integer,
    weight numeric(4,2) NOT NULL,
    device text NOT NULL,
    languages text NOT NULL,
    remarks text
);
CREATE TABLE answers (
    respondent_id integer NOT NULL REFERENCES respondents (respondent_id),
    question_id integer NOT NULL REFERENCES questions (question_id),
    score integer,
    PRIMARY KEY (respondent_id, question_id)
);
