import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;

/** What JDBC does, for test_jdbc.py: one line for each check, name and result with a tab between. */
class Client {
    interface Body { Object run() throws Exception; }

    static void check(String name, Body body) {
        String found;
        try {
            found = String.valueOf(body.run());
        } catch (SQLException error) {
            String place = String.valueOf(error.getMessage()).replaceAll("(?s).*Position: (\\d+).*", " at $1");
            String rule = String.valueOf(error.getMessage()).replaceAll("(?s).*Detail: (PV\\d{3}):.*", " $1");
            found = "error " + error.getSQLState() + (rule.startsWith(" PV") ? rule : "") + (place.startsWith(" at ") ? place : "");
        } catch (Exception error) {
            found = "failed " + error;
        }
        System.out.println(name + "\t" + found);
    }

    static String rows(ResultSet result, int... wanted) throws SQLException {
        StringBuilder shown = new StringBuilder();
        while (result.next()) {
            for (int column : wanted) shown.append(result.getString(column)).append(' ');
            shown.append(';');
        }
        return shown.toString();
    }

    static int count(ResultSet result) throws SQLException {
        int count = 0;
        while (result.next()) count++;
        return count;
    }

    static void parameters(PreparedStatement s) throws SQLException {
        s.setShort(1, (short) 1);
        s.setInt(2, 2);
        s.setLong(3, 9007199254740993L);
        s.setBigDecimal(4, new BigDecimal("12.50"));
        s.setFloat(5, 1.5f);
        s.setDouble(6, 0.1);
        s.setBoolean(7, true);
        s.setString(8, "ä 'quoted'");
    }

    static void both(Connection c, int age) throws SQLException {
        Statement s = c.createStatement();
        check("row", () -> rows(s.executeQuery("SELECT * FROM thing ORDER BY id"), 1, 4, 5, 7, 8, 10, 11));
        check("parameters", () -> {
            PreparedStatement p = c.prepareStatement("SELECT id FROM thing WHERE small = ? AND whole = ? AND big = ? AND money = ?"
                + " AND single = ? AND double = ? AND flag = ? AND name = ?");
            StringBuilder shown = new StringBuilder();
            for (int turn = 0; turn < 7; turn++) {
                parameters(p);
                shown.append(rows(p.executeQuery(), 1));
            }
            return shown;
        });
        check("nulls", () -> {
            PreparedStatement p = c.prepareStatement("SELECT COUNT(*) FROM thing WHERE whole = ? OR name = ? OR day = ? OR big = ?");
            p.setNull(1, Types.INTEGER);
            p.setNull(2, Types.VARCHAR);
            p.setNull(3, Types.DATE);
            p.setObject(4, null);
            return rows(p.executeQuery(), 1);
        });
        check("error", () -> s.executeQuery("SELECT age FROM person"));
        check("several", () -> {
            s.execute("SELECT 1; SELECT 2");
            String first = rows(s.getResultSet(), 1);
            s.getMoreResults();
            return first + rows(s.getResultSet(), 1);
        });
        check("savepoint", () -> {
            c.setAutoCommit(false);
            Savepoint point = c.setSavepoint("x");
            try {
                s.executeQuery("SELECT nosuch FROM person");
            } catch (SQLException error) {
                c.rollback(point);
            }
            String found = rows(s.executeQuery("SELECT 1"), 1);
            c.commit();
            c.setAutoCommit(true);
            return found;
        });
        check("question", () -> {
            PreparedStatement p = c.prepareStatement("SELECT COUNT(*) FROM person WHERE age > ?");
            String first = "";
            for (int turn = 0; turn < 7; turn++) {
                p.setInt(1, age);
                String found = rows(p.executeQuery(), 1);
                if (turn > 0 && !found.equals(first)) return "another answer";
                first = found;
            }
            return p.getWarnings().getMessage().split(";")[0];
        });
        check("read only", () -> {
            c.setReadOnly(true);
            c.setAutoCommit(false);
            String found = rows(s.executeQuery("SELECT 1"), 1);
            c.commit();
            c.setAutoCommit(true);
            c.setReadOnly(false);
            return found + c.isValid(2);
        });
        check("write", () -> s.executeUpdate("INSERT INTO thing VALUES (1)"));
    }

    static void dates(Connection c) throws SQLException {
        check("dates", () -> {
            PreparedStatement p = c.prepareStatement("SELECT id FROM thing WHERE day = ? AND moment = ?");
            StringBuilder shown = new StringBuilder();
            for (int turn = 0; turn < 7; turn++) {
                p.setDate(1, Date.valueOf("2020-02-29"));
                p.setTimestamp(2, Timestamp.valueOf("2020-02-29 12:30:00.000001"));
                shown.append(rows(p.executeQuery(), 1));
                p.setObject(1, LocalDate.of(2020, 2, 29));
                p.setObject(2, LocalDateTime.of(2020, 2, 29, 12, 30, 0, 1000));
                shown.append(rows(p.executeQuery(), 1));
            }
            return shown;
        });
        check("described", () -> {
            PreparedStatement p = c.prepareStatement("SELECT city, COUNT(*) AS n, AVG(income) AS a FROM person WHERE age > ? GROUP BY 1");
            ResultSetMetaData m = p.getMetaData();
            StringBuilder shown = new StringBuilder(p.getParameterMetaData().getParameterTypeName(1));
            for (int at = 1; at <= m.getColumnCount(); at++) shown.append(' ').append(m.getColumnLabel(at)).append(':').append(m.getColumnTypeName(at));
            return shown;
        });
        check("fetched", () -> {
            c.setAutoCommit(false);
            Statement s = c.createStatement();
            s.setFetchSize(700);
            int found = count(s.executeQuery("SELECT i FROM number"));
            c.commit();
            c.setAutoCommit(true);
            return found;
        });
    }

    static void metadata(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        check("getTables", () -> rows(m.getTables(null, null, "%", new String[] {"TABLE", "VIEW"}), 3, 4));
        check("getColumns", () -> rows(m.getColumns(null, null, "person", "%"), 4, 6, 18));
        check("getPrimaryKeys", () -> rows(m.getPrimaryKeys(null, null, "person"), 4, 6));
        check("getImportedKeys", () -> rows(m.getImportedKeys(null, null, "loan"), 3, 4, 7, 8));
        check("getExportedKeys", () -> rows(m.getExportedKeys(null, null, "person"), 3, 4, 7, 8));
        check("getCrossReference", () -> rows(m.getCrossReference(null, null, "person", null, null, "loan"), 4, 8));
        check("getIndexInfo", () -> rows(m.getIndexInfo(null, null, "person", false, false), 6, 9, 11));
        check("getBestRowIdentifier", () -> rows(m.getBestRowIdentifier(null, null, "person", 0, true), 2));
        check("getFunctions", () -> rows(m.getFunctions(null, null, "dp%"), 3));
        check("getCatalogs", () -> rows(m.getCatalogs(), 1));
        check("answers", () -> count(m.getTypeInfo()) > 20 && count(m.getSchemas()) == 3 && count(m.getTableTypes()) > 5
            && count(m.getTablePrivileges(null, null, "person")) > 0 && count(m.getColumnPrivileges(null, null, "person", "age")) > 0
            && count(m.getProcedureColumns(null, null, "dp_low", "%")) > 0 && count(m.getFunctionColumns(null, null, "dp_low", "%")) > 0
            && count(m.getUDTs(null, null, "%", null)) >= 0 && count(m.getVersionColumns(null, null, "person")) > 0
            && count(m.getProcedures(null, null, "%")) >= 0 && m.getSQLKeywords().length() > 0 && m.getMaxColumnNameLength() == 63);
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/people?user=alice&password=" + arguments[1];
        int age = Integer.parseInt(arguments[3]);
        for (int at = 4; at < arguments.length; at++) {
            System.out.println("connection\t" + arguments[at]);
            boolean isSimple = arguments[at].contains("=simple");
            try (Connection c = DriverManager.getConnection(url + "&" + arguments[at])) {
                both(c, age + at);
                if (!isSimple) dates(c);
                if (at == 4) {
                    metadata(c);
                    check("timeout", () -> {
                        Statement s = c.createStatement();
                        s.setQueryTimeout(1);
                        return s.executeQuery(arguments[2]);
                    });
                    check("after", () -> rows(c.createStatement().executeQuery("SELECT 1"), 1));
                }
            }
        }
    }
}
