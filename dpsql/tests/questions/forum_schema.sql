CREATE TABLE categories (
    category_id integer PRIMARY KEY,
    name text NOT NULL,
    parent text NOT NULL
);
CREATE TABLE calendar (
    day date PRIMARY KEY,
    month_start date NOT NULL,
    is_weekend boolean NOT NULL
);
CREATE TABLE members (
    member_id integer PRIMARY KEY,
    username text NOT NULL,
    email text NOT NULL,
    joined_at timestamp NOT NULL,
    country text,
    is_moderator boolean NOT NULL,
    last_seen date
);
CREATE TABLE threads (
    thread_id integer PRIMARY KEY,
    author_id integer NOT NULL REFERENCES members (member_id),
    category_id integer NOT NULL REFERENCES categories (category_id),
    title text NOT NULL,
    tags text,
    created_at timestamp NOT NULL,
    views integer NOT NULL,
    is_solved boolean NOT NULL
);
CREATE TABLE posts (
    post_id integer PRIMARY KEY,
    thread_id integer NOT NULL REFERENCES threads (thread_id),
    author_id integer NOT NULL REFERENCES members (member_id),
    body text NOT NULL,
    created_at timestamp NOT NULL,
    score integer NOT NULL,
    edited_at timestamp
);
CREATE TABLE votes (
    vote_id integer PRIMARY KEY,
    post_id integer NOT NULL REFERENCES posts (post_id),
    voter_id integer NOT NULL REFERENCES members (member_id),
    value integer NOT NULL,
    cast_at timestamp NOT NULL
);
