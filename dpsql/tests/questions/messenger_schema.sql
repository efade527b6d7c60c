CREATE TABLE accounts (
    account_id text PRIMARY KEY,
    country text,
    is_business boolean NOT NULL
);
CREATE TABLE messages (
    sender text NOT NULL REFERENCES accounts (account_id),
    number integer NOT NULL,
    receiver text NOT NULL REFERENCES accounts (account_id),
    chars integer NOT NULL,
    sent_at timestamp NOT NULL,
    answers_sender text,
    answers_number integer,
    PRIMARY KEY (sender, number),
    FOREIGN KEY (answers_sender, answers_number) REFERENCES messages (sender, number)
);
