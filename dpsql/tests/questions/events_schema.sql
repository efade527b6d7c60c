CREATE TABLE plans (
    plan text PRIMARY KEY,
    monthly_price numeric(6,2) NOT NULL,
    seats integer NOT NULL
);
CREATE TABLE calendar (
    day date PRIMARY KEY,
    week_start date NOT NULL,
    is_weekend boolean NOT NULL
);
CREATE TABLE users (
    user_id integer PRIMARY KEY,
    created_at timestamp NOT NULL,
    email text NOT NULL,
    plan text NOT NULL REFERENCES plans (plan),
    source text,
    country text NOT NULL
);
CREATE TABLE events (
    event_id integer PRIMARY KEY,
    user_id integer NOT NULL REFERENCES users (user_id),
    occurred_at timestamp NOT NULL,
    name text NOT NULL,
    session_id text NOT NULL,
    properties jsonb NOT NULL
);
