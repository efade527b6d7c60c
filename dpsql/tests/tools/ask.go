// What pgx asks, through itself: run by `make tools` where Go is.
// A line for each check: ok or failed, its name, what came.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v4"
)

var all = context.Background()

type ask func(*pgx.Conn) (interface{}, error)

func one(sql string, arguments ...interface{}) ask {
	return func(c *pgx.Conn) (found interface{}, err error) {
		err = c.QueryRow(all, sql, arguments...).Scan(&found)
		return
	}
}

func many(sql string, least int, arguments ...interface{}) ask {
	return func(c *pgx.Conn) (interface{}, error) {
		rows, err := c.Query(all, sql, arguments...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		count := 0
		for ; rows.Next(); count++ {
			if _, err := rows.Values(); err != nil {
				return nil, err
			}
		}
		if rows.Err() == nil && count < least {
			return nil, fmt.Errorf("%d rows", count)
		}
		return count, rows.Err()
	}
}

var checks = []struct {
	name string
	ask  ask
}{
	{"typed", typed}, {"count", one("SELECT COUNT(*) FROM person")}, {"parameter", one("SELECT COUNT(*) FROM person WHERE age > $1", 30)},
	{"any", one("SELECT COUNT(*) FROM person WHERE age = ANY($1)", []int32{1, 2, 3})},
	{"ilike", one("SELECT COUNT(*) FROM person WHERE city ILIKE $1", "n%")},
	{"date", one("SELECT COUNT(*) FROM person WHERE born >= $1", time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC))},
	{"time", one("SELECT COUNT(*) FROM loan WHERE taken >= $1", time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC))},
	{"groups", many("SELECT city, COUNT(*), AVG(income) FROM person GROUP BY city", 2)},
	{"float bins", many("SELECT floor(height * 2) / 2 AS bin, COUNT(*) FROM person GROUP BY 1", 2)},
	{"rows", many("SELECT i FROM number", 20000)}, {"preview", many("SELECT * FROM person LIMIT 5", 0)},
	{"tables", many("SELECT table_name FROM information_schema.tables WHERE table_schema = $1", 4, "public")},
	{"copy", copied}, {"prepared", prepared}, {"batch", batch}, {"block", block}, {"refused", refused}, {"cancelled", cancelled},
}

func main() {
	at := fmt.Sprintf("postgres://alice:%s@127.0.0.1:%s/people?sslmode=disable", url.PathEscape(os.Args[2]), os.Args[1])
	for _, way := range []string{"", "&statement_cache_mode=describe", "&statement_cache_capacity=0", "&prefer_simple_protocol=true"} {
		for _, check := range checks {
			if check.name == "prepared" && strings.Contains(way, "=describe") {
				continue // there it takes a name for a statement's text
			}
			c, err := pgx.Connect(all, at+way)
			var found interface{}
			if err == nil {
				found, err = check.ask(c)
				c.Close(all)
			}
			state, what := "ok", fmt.Sprintf("%.60v", found)
			if err != nil {
				state, what = "failed", err.Error()
			}
			fmt.Println(strings.Join([]string{state, "pgx " + check.name + way, strings.ReplaceAll(what, "\n", " ")}, "\t"))
		}
	}
}
