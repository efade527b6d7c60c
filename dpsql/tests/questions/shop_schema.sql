CREATE TABLE countries (
    code text PRIMARY KEY,
    name text NOT NULL,
    region text NOT NULL
);
CREATE TABLE products (
    product_id integer PRIMARY KEY,
    name text NOT NULL,
    category text NOT NULL,
    list_price numeric(8,2) NOT NULL
);
CREATE TABLE calendar (
    day date PRIMARY KEY,
    month_start date NOT NULL,
    is_weekend boolean NOT NULL,
    is_holiday boolean NOT NULL
);
CREATE TABLE customers (
    customer_id integer PRIMARY KEY,
    email text NOT NULL,
    signed_up date NOT NULL,
    birth_date date,
    country text NOT NULL REFERENCES countries (code),
    channel text NOT NULL,
    newsletter boolean NOT NULL
);
CREATE TABLE orders (
    order_id integer PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES customers (customer_id),
    ordered_at timestamp NOT NULL,
    status text NOT NULL,
    coupon text,
    city text NOT NULL,
    shipping numeric(6,2) NOT NULL,
    total numeric(10,2) NOT NULL
);
CREATE TABLE order_items (
    order_id integer NOT NULL REFERENCES orders (order_id),
    line_no integer NOT NULL,
    product_id integer NOT NULL REFERENCES products (product_id),
    quantity integer NOT NULL,
    unit_price numeric(8,2) NOT NULL,
    PRIMARY KEY (order_id, line_no)
);
