import java.math.BigDecimal;
import java.nio.file.*;
import java.sql.*;
import java.time.LocalDate;
import java.util.*;

/** Sends the statements of a file through JDBC, and prints a line for each: ok, or failed and why. */
class Share {
    static Object value(String written) {
        String text = written.substring(2);
        switch (written.charAt(0)) {
            case 'i': return Integer.valueOf(text);
            case 'n': return new BigDecimal(text);
            case 'd': return LocalDate.parse(text);
            default: return text;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String place = "jdbc:postgresql://127.0.0.1:" + arguments[1] + "/people?user=alice&password=";
        try (Connection c = DriverManager.getConnection(place + arguments[2].replace(" ", "%20") + "&sslmode=disable")) {
            for (String line : Files.readAllLines(Path.of(arguments[3]))) {
                String[] parts = line.split("\t");
                String sql = new String(Base64.getDecoder().decode(parts[0]));
                try (PreparedStatement s = c.prepareStatement(parts.length > 1 ? sql.replaceAll("\\$\\d+", "?") : sql)) {
                    for (int at = 1; at < parts.length; at++) s.setObject(at, value(parts[at]));
                    if (s.execute()) {
                        ResultSet rows = s.getResultSet();
                        while (rows.next()) for (int at = 1; at <= rows.getMetaData().getColumnCount(); at++) rows.getObject(at);
                    }
                    System.out.println("ok\t");
                } catch (Exception error) {
                    System.out.println("failed\t" + String.valueOf(error).replaceAll("[\n\t]", " "));
                }
            }
        }
    }
}
