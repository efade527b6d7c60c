CREATE TABLE users (
    id integer PRIMARY KEY,
    display_name text NOT NULL,
    country text,
    created_on date NOT NULL
);
CREATE TABLE topics (
    topic_id integer PRIMARY KEY,
    name text NOT NULL
);
CREATE TABLE posts (
    id integer PRIMARY KEY,
    owner_id integer NOT NULL REFERENCES users (id),
    topic_id integer NOT NULL REFERENCES topics (topic_id),
    kind text NOT NULL,
    parent_id integer REFERENCES posts (id),
    tags text,
    created_at timestamp NOT NULL
);
CREATE TABLE votes (
    id bigint PRIMARY KEY,
    post_id integer NOT NULL REFERENCES posts (id),
    user_id integer NOT NULL REFERENCES users (id),
    kind text NOT NULL,
    cast_at timestamp NOT NULL
);
