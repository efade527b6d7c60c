// Sends the statements of a file through pgx, and prints a line for each: ok, or failed and why.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v4"
)

func value(written string) interface{} {
	text := written[2:]
	switch written[0] {
	case 'i':
		found, _ := strconv.Atoi(text)
		return found
	case 'n':
		found, _ := strconv.ParseFloat(text, 64)
		return found
	case 'd':
		found, _ := time.Parse("2006-01-02", text)
		return found
	}
	return text
}

func ask(c *pgx.Conn, sql string, values []interface{}) error {
	rows, err := c.Query(context.Background(), sql, values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			return err
		}
	}
	return rows.Err()
}

func main() {
	place := "postgres://alice:" + url.PathEscape(os.Args[3]) + "@127.0.0.1:" + os.Args[2] + "/people?sslmode=disable"
	c, err := pgx.Connect(context.Background(), place)
	if err != nil {
		panic(err)
	}
	file, err := os.Open(os.Args[4])
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		sql, _ := base64.StdEncoding.DecodeString(parts[0])
		values := []interface{}{}
		for _, part := range parts[1:] {
			values = append(values, value(part))
		}
		if err := ask(c, string(sql), values); err != nil {
			fmt.Println("failed\t" + strings.NewReplacer("\n", " ", "\t", " ").Replace(err.Error()))
		} else {
			fmt.Println("ok\t")
		}
	}
}
