# What dbplyr asks, through itself: run by `make tools` where R is.
# A line for each check: ok or failed, its name, what came.
suppressMessages({library(DBI); library(dplyr); library(dbplyr)})

asked <- commandArgs(trailingOnly = TRUE)
at <- list(host = "127.0.0.1", port = as.integer(asked[1]), user = "alice", password = asked[2], dbname = "people")
# Debian has RPostgreSQL; RPostgres asks the same of dbplyr's tables.
driver <- if (requireNamespace("RPostgres", quietly = TRUE)) RPostgres::Postgres() else RPostgreSQL::PostgreSQL()
db <- do.call(dbConnect, c(list(driver), at))
line <- function(...) cat(gsub("[\n\t]", " ", c(...)), sep = "\t", fill = 10000)
check <- function(name, ask) tryCatch({
  found <- withCallingHandlers(eval(ask), warning = function(w) stop(conditionMessage(w)))
  line("ok", paste("dbplyr", name), substr(paste(format(found), collapse = " "), 1, 60))
}, error = function(e) line("failed", paste("dbplyr", name), conditionMessage(e)))

person <- tbl(db, "person")
loan <- tbl(db, "loan")
thing <- tbl(db, "thing")
checks <- expression(
  tables = stopifnot(all(c("person", "loan") %in% dbListTables(db))),
  fields = stopifnot(identical(dbListFields(db, "person")[1:2], c("id", "age"))),
  exists = stopifnot(dbExistsTable(db, "person"), !dbExistsTable(db, "nosuch")),
  `read table` = stopifnot(nrow(dbReadTable(db, "thing")) == 2),
  glimpse = stopifnot(ncol(collect(head(person, 5))) == 7),
  print = capture.output(print(person)),
  collect = stopifnot(nrow(collect(thing)) == 2),
  pull = stopifnot(length(pull(thing, name)) == 2),
  count = collect(count(person)),
  `count by` = stopifnot(nrow(collect(count(person, city, sort = TRUE))) == 2),
  tally = collect(tally(group_by(person, city))),
  summarise = collect(summarise(group_by(person, city), n = n(), a = mean(age, na.rm = TRUE), s = sum(income, na.rm = TRUE))),
  spread = collect(summarise(person, v = var(age, na.rm = TRUE), d = sd(age, na.rm = TRUE))),
  median = collect(summarise(person, m = median(age, na.rm = TRUE))),
  range = collect(summarise(person, low = min(age, na.rm = TRUE), high = max(age, na.rm = TRUE))),
  distinct = collect(distinct(person, city)),
  n_distinct = collect(summarise(person, n = n_distinct(city))),
  filter = collect(count(filter(person, age > 30L, city %in% c("north", "south"), !is.na(height)))),
  between = collect(count(filter(person, between(age, 10L, 20L)))),
  pattern = collect(count(filter(person, str_like(city, "n%")))),
  mutate = collect(count(mutate(person, old = age >= 65L), old)),
  if_else = collect(count(mutate(person, k = if_else(age > 40L, "old", "young")), k)),
  case_when = collect(count(mutate(person, k = case_when(age < 18L ~ "child", age < 65L ~ "adult", TRUE ~ "old")), k)),
  bins = collect(count(mutate(person, b = floor(age / 10) * 10), b)),
  `float bins` = collect(count(mutate(person, b = floor(height * 2) / 2), b)),
  year = collect(count(mutate(loan, y = year(taken)), y)),
  month = collect(count(mutate(loan, m = floor_date(taken, "month")), m)),
  since = collect(count(filter(loan, taken >= !!as.POSIXct("2024-03-01", tz = "UTC")))),
  date = collect(count(filter(person, born >= as.Date("1980-01-01")))),
  join = collect(summarise(group_by(inner_join(loan, person, by = c("person_id" = "id")), city), s = sum(amount, na.rm = TRUE))),
  share = collect(mutate(count(person, city), p = n / sum(n, na.rm = TRUE))),
  rank = collect(mutate(count(person, city), r = min_rank(n))),
  running = collect(mutate(window_order(count(person, city), city), c = cumsum(n))),
  slice = collect(slice_max(count(person, city), n, n = 1)),
  arrange = collect(arrange(summarise(group_by(person, active), n = n()), desc(n))),
  having = collect(filter(summarise(group_by(person, city), n = n()), n > 100)),
  union = collect(union_all(count(filter(person, age > 30L)), count(filter(person, age <= 30L)))),
  head = collect(head(arrange(thing, id), 1)),
  query = dbGetQuery(db, sql("SELECT city, COUNT(*) AS n FROM person GROUP BY city")),
  parts = {r <- dbSendQuery(db, "SELECT i FROM number"); x <- nrow(dbFetch(r, 700)); dbClearResult(r); stopifnot(x == 700)},
  written = {
    own <- data.frame(a = c(1L, 2L), b = c("x", "y'z"), stringsAsFactors = FALSE)
    dbGetQuery(db, "SET search_path = workspace, public")
    for (i in 1:2) stopifnot(dbWriteTable(db, "written", own, append = i == 2, row.names = FALSE))
    stopifnot(nrow(dbReadTable(db, "written")) == 4, dbExistsTable(db, "written"), dbRemoveTable(db, "written"))
    stopifnot(!dbExistsTable(db, "written"), nrow(collect(count(person, city))) == 2)
    dbGetQuery(db, "RESET search_path")
  },
  transaction = {dbBegin(db); dbGetQuery(db, "SELECT 1"); dbCommit(db)},
  show_query = capture.output(show_query(count(person, city))),
  explain = capture.output(explain(count(person, city)))
)
for (name in names(checks)) check(name, checks[[name]])
invisible(dbDisconnect(db))
