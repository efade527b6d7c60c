// What ask.go asks in more than one statement.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

func typed(c *pgx.Conn) (interface{}, error) {
	var big int64
	var double float64
	var flag bool
	var name string
	var day, moment time.Time
	row := c.QueryRow(all, "SELECT big, double, flag, name, day, moment FROM thing WHERE id = $1", 1)
	err := row.Scan(&big, &double, &flag, &name, &day, &moment)
	if err == nil && (big != 9007199254740993 || name != "ä 'quoted'" || day.Day() != 29 || moment.Nanosecond() != 1000) {
		err = fmt.Errorf("%v %v %v %v", big, name, day, moment)
	}
	return big, err
}

func copied(c *pgx.Conn) (interface{}, error) {
	var out bytes.Buffer
	_, err := c.PgConn().CopyTo(all, &out, "COPY (SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY 1) TO STDOUT WITH (FORMAT csv)")
	if err == nil && strings.Count(out.String(), "\n") != 2 {
		err = errors.New(out.String())
	}
	return out.String(), err
}

func prepared(c *pgx.Conn) (interface{}, error) {
	if _, err := c.Prepare(all, "older", "SELECT COUNT(*) FROM person WHERE age > $1 AND city = $2"); err != nil {
		return nil, err
	}
	first, err := one("older", 40, "north")(c)
	for turn := 0; turn < 6 && err == nil; turn++ {
		var again interface{}
		if again, err = one("older", 40, "north")(c); err == nil && again != first {
			err = fmt.Errorf("%v, then %v", first, again)
		}
	}
	return first, err
}

func batch(c *pgx.Conn) (value interface{}, err error) {
	asked := &pgx.Batch{}
	asked.Queue("SELECT COUNT(*) FROM person WHERE age > $1", 20)
	asked.Queue("SELECT id FROM thing WHERE id = $1", 2)
	asked.Queue("SELECT AVG(age) FROM person")
	found := c.SendBatch(all, asked)
	defer found.Close()
	for turn := 0; turn < 3 && err == nil; turn++ {
		err = found.QueryRow().Scan(&value)
	}
	return
}

func block(c *pgx.Conn) (interface{}, error) {
	t, err := c.BeginTx(all, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	defer t.Rollback(all)
	inner, err := t.Begin(all)
	if err != nil {
		return nil, err
	}
	if _, err = inner.Exec(all, "SELECT nosuch FROM person"); err == nil {
		return nil, errors.New("no error")
	}
	if err = inner.Rollback(all); err != nil {
		return nil, err
	}
	_, err = t.Exec(all, "SELECT 1")
	return nil, err
}

func refused(c *pgx.Conn) (interface{}, error) {
	_, err := c.Exec(all, "SELECT age FROM person WHERE age > 3")
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == "42501" && said.ConstraintName == "PV002" && said.Position == 8 {
		return said.Code, nil
	}
	return nil, fmt.Errorf("%#v", err)
}

func cancelled(c *pgx.Conn) (interface{}, error) {
	soon, cancel := context.WithTimeout(all, 50*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(soon, "SELECT COUNT(*) FROM number a, number b, number c WHERE a.i * b.i % 7 = c.i"); err == nil {
		return nil, errors.New("not cancelled")
	}
	return true, nil
}
