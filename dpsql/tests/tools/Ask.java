import java.sql.*;
import java.time.*;

/** What DBeaver, DataGrip, Metabase and Tableau do through JDBC: run by `make tools` where Java and the driver are. */
class Ask {
    interface Body { Object run(Connection c) throws Exception; }

    static String[] arguments;

    static Connection open(String options) throws SQLException {
        String place = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/people?user=alice&password=";
        return DriverManager.getConnection(place + arguments[1].replace(" ", "%20") + "&sslmode=disable" + options);
    }

    static void check(String name, String options, Body body) {
        String said = "ok\tjdbc " + name + "\t";
        try (Connection c = open(options)) {
            said += String.valueOf(body.run(c)).replaceAll("[\n\t]", " ");
        } catch (Throwable error) {
            said = "failed\tjdbc " + name + "\t" + String.valueOf(error).replaceAll("[\n\t]", " ");
        }
        System.out.println(said);
    }

    static void expect(boolean is, Object what) { if (!is) throw new AssertionError(what); }

    static int count(ResultSet rows, int least) throws SQLException {
        int count = 0;
        while (rows.next()) {
            for (int at = 1; at <= rows.getMetaData().getColumnCount(); at++) rows.getObject(at);
            count++;
        }
        rows.close();
        expect(count >= least, count + " rows");
        return count;
    }

    static void metadata() {
        check("getTables", "", c -> count(c.getMetaData().getTables("people", "public", "%", null), 4));
        check("getColumns", "", c -> count(c.getMetaData().getColumns("people", "public", "person", "%"), 7));
        check("getPrimaryKeys", "", c -> count(c.getMetaData().getPrimaryKeys("people", "public", "person"), 1));
        check("getImportedKeys", "", c -> count(c.getMetaData().getImportedKeys("people", "public", "loan"), 1));
        check("getIndexInfo", "", c -> count(c.getMetaData().getIndexInfo("people", "public", "person", true, false), 1));
        check("getFunctions", "", c -> count(c.getMetaData().getFunctions(null, "%", "%"), 0));
        check("getTypeInfo", "", c -> count(c.getMetaData().getTypeInfo(), 20));
        check("getSchemas", "", c -> count(c.getMetaData().getSchemas("people", "%"), 2));
        check("getTablePrivileges", "", c -> count(c.getMetaData().getTablePrivileges("people", "public", "person"), 1));
        check("product", "", c -> c.getMetaData().getDatabaseProductVersion() + c.getMetaData().getDatabaseMajorVersion());
        check("session", "", c -> c.getSchema() + c.getCatalog() + c.getTransactionIsolation() + c.isReadOnly() + c.getNetworkTimeout());
    }

    static void grids() {
        check("grid of people", "", c -> {
            Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY);
            s.setMaxRows(200); // is in no text, so all rows are asked for
            return count(s.executeQuery("SELECT x.* FROM public.person x"), 0);
        });
        check("grid of people with its limit", "", c -> count(c.createStatement().executeQuery("SELECT * FROM person LIMIT 200"), 0));
        check("grid of a public table", "", c -> {
            Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
            s.setMaxRows(200);
            ResultSet rows = s.executeQuery("SELECT i FROM number ORDER BY i");
            expect(rows.absolute(150) && rows.getLong(1) == 149 && rows.last() && rows.getRow() == 200, rows.getRow());
            return true;
        });
        check("portal", "", c -> {
            c.setAutoCommit(false);
            Statement s = c.createStatement();
            s.setFetchSize(999);
            ResultSet rows = s.executeQuery("SELECT i FROM number");
            rows.next();
            return count(c.createStatement().executeQuery("SELECT COUNT(*) FROM person"), 1) + count(rows, 19999);
        });
        check("updatable", "", c -> count(c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)
            .executeQuery("SELECT id, name FROM thing"), 2));
    }

    static void prepared(String options) {
        check("prepared" + options, options, c -> {
            PreparedStatement p = c.prepareStatement("SELECT city, COUNT(*) AS n, AVG(income) FROM person WHERE born >= ? AND age > ? GROUP BY city");
            for (int turn = 0; turn < 8; turn++) {
                p.setObject(1, turn % 2 == 0 ? LocalDate.of(1980, 1, 1) : Date.valueOf("1980-01-01"));
                p.setInt(2, 30);
                count(p.executeQuery(), 2);
            }
            return p.getMetaData().getColumnTypeName(3) + p.getParameterMetaData().getParameterCount();
        });
        check("moments" + options, options, c -> {
            PreparedStatement p = c.prepareStatement("SELECT COUNT(*) FROM loan WHERE taken >= ? AND taken < ?");
            for (int turn = 0; turn < 7; turn++) {
                p.setTimestamp(1, Timestamp.valueOf("2024-03-01 00:00:00"));
                p.setObject(2, turn % 2 == 0 ? LocalDateTime.of(2024, 5, 1, 0, 0) : OffsetDateTime.of(2024, 5, 1, 0, 0, 0, 0, ZoneOffset.UTC));
                count(p.executeQuery(), 1);
            }
            return true;
        });
        check("array" + options, options, c -> {
            PreparedStatement p = c.prepareStatement("SELECT COUNT(*) FROM person WHERE city = ANY(?) AND age = ANY(?)");
            p.setArray(1, c.createArrayOf("text", new String[] {"north", "south"}));
            p.setArray(2, c.createArrayOf("int4", new Integer[] {20, 30}));
            return count(p.executeQuery(), 1);
        });
        check("strings" + options, options, c -> {
            PreparedStatement p = c.prepareStatement("SELECT COUNT(*) FROM person WHERE city ILIKE ? OR city IN (?, ?)");
            p.setString(1, "n%");
            p.setString(2, "north");
            p.setString(3, "south");
            return count(p.executeQuery(), 1);
        });
    }

    static void sessions() {
        check("timeout", "", c -> {
            Statement s = c.createStatement();
            s.setQueryTimeout(1);
            try {
                s.executeQuery("SELECT COUNT(*) FROM number a, number b, number c WHERE a.i * b.i % 7 = c.i % 7");
            } catch (SQLException error) {
                expect(error.getSQLState().equals("57014"), error);
                return count(s.executeQuery("SELECT 1"), 1);
            }
            throw new AssertionError("no timeout");
        });
        check("batch", "", c -> {
            Statement s = c.createStatement();
            s.addBatch("SET application_name = 'a'");
            s.addBatch("SET extra_float_digits = 3");
            return s.executeBatch().length;
        });
        check("client info", "", c -> { c.setClientInfo("ApplicationName", "DBeaver 24.1 - Main"); return c.getClientInfo("ApplicationName"); });
        check("explain", "", c -> count(c.createStatement().executeQuery("EXPLAIN (FORMAT JSON, ANALYSE) SELECT COUNT(*) FROM person"), 1));
        check("function", "", c -> count(c.createStatement().executeQuery("SELECT COUNT(*) FROM loan WHERE taken > {fn now()}"), 1));
        check("copy", "", c -> {
            String sql = "COPY (SELECT city, COUNT(*) FROM person GROUP BY 1) TO STDOUT";
            return c.unwrap(org.postgresql.PGConnection.class).getCopyAPI().copyOut(sql, new java.io.StringWriter());
        });
    }

    public static void main(String[] given) {
        arguments = given;
        metadata();
        grids();
        for (String way : new String[] {"", "&preferQueryMode=simple", "&prepareThreshold=1", "&binaryTransfer=false&stringtype=unspecified"}) prepared(way);
        sessions();
    }
}
