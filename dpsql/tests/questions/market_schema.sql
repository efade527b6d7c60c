CREATE TABLE people (
    person_id integer PRIMARY KEY,
    name text NOT NULL,
    city text NOT NULL
);
CREATE TABLE items (
    item_id bigint PRIMARY KEY,
    seller_id integer NOT NULL REFERENCES people (person_id),
    category text NOT NULL,
    price numeric(8, 2) NOT NULL
);
CREATE TABLE orders (
    order_id bigint PRIMARY KEY,
    buyer_id integer NOT NULL REFERENCES people (person_id),
    item_id bigint NOT NULL REFERENCES items (item_id),
    amount numeric(8, 2) NOT NULL,
    ordered_on date NOT NULL,
    shipped_on date
);
CREATE TABLE reviews (
    order_id bigint PRIMARY KEY REFERENCES orders (order_id),
    stars integer NOT NULL
);
