# Error bars as ggplot draws them, of what dpsql answered: run by `make tools` where it is, over the demo.
# A line for each check: ok or failed, its name, what came. The picture of the manual is such a one.
suppressPackageStartupMessages({ library(DBI); library(ggplot2) })
given <- commandArgs(trailingOnly = TRUE)
said <- tryCatch({
  connection <- dbConnect(RPostgreSQL::PostgreSQL(), host = "127.0.0.1", port = as.integer(given[1]), user = "analyst",
                          password = given[2], dbname = "campus")
  asked <- "SELECT major, AVG(gpa) AS gpa, dp_low(AVG(gpa)) AS gpa_low, dp_high(AVG(gpa)) AS gpa_high FROM student
            WHERE major IS NOT NULL GROUP BY major"
  frame <- dbGetQuery(connection, asked)
  drawn <- ggplot(frame, aes(x = major, y = gpa)) + geom_point(size = 2) +
    geom_errorbar(aes(ymin = gpa_low, ymax = gpa_high), width = 0.2) + labs(x = NULL) + theme_minimal()
  path <- file.path(given[3], "ggplot-bars.png")
  ggsave(path, drawn, width = 6.4, height = 2.6, dpi = 100, bg = "white")
  dbDisconnect(connection)
  stopifnot(file.size(path) > 5000, nrow(frame) > 2)
  c("ok", paste(nrow(frame), "bars"))
}, error = function(error) c("failed", gsub("\n", " ", conditionMessage(error))))
cat(said[1], "ggplot error bars", said[2], sep = "\t")
cat("\n")
