# The driver of R kernels: requests on descriptor 3, replies on 4.
local({
  carry <- function(to, mode) pipe(paste0("trap '' INT; exec cat ", to, " 3<&- 4>&-"), mode)
  requests <- carry("<&3", "rb")
  replies <- carry(">&4", "wb")
  outputs <- list(carry(">&1", "wb"), carry(">&2", "wb"))
  longest <- 2^20
  cell <- NULL
  count <- 0L

  # --- JSON ---------------------------------------------------------------------
  text <- function(x) {
    x <- enc2utf8(as.character(x))
    bad <- !validUTF8(x)
    if (any(bad)) x[bad] <- iconv(x[bad], "UTF-8", "UTF-8", sub = "byte")
    x <- gsub("\\", "\\\\", x, fixed = TRUE)
    x <- gsub("\"", "\\\"", x, fixed = TRUE)
    x <- gsub("\n", "\\n", x, fixed = TRUE)
    if (any(grepl("[\001-\037]", x)))
      for (i in 1:31) x <- gsub(intToUtf8(i), sprintf("\\u%04x", i), x, fixed = TRUE)
    paste0("\"", x, "\"")
  }
  json <- function(v) {
    if (is.null(v)) "null"
    else if (is.list(v) && !is.null(names(v)))
      paste0("{", paste0(text(names(v)), ":", vapply(v, json, ""), collapse = ","), "}")
    else if (is.list(v)) paste0("[", paste(vapply(v, json, ""), collapse = ","), "]")
    else if (is.logical(v)) if (v) "true" else "false"
    else if (is.numeric(v)) format(v, scientific = FALSE, digits = 15)
    else text(v)
  }
  send <- function(event) {
    writeLines(json(event), replies, useBytes = TRUE)
    flush(replies)
  }

  # --- requests: flat objects, text in base64 -------------------------------------
  field <- function(line, name) {
    m <- regmatches(line, regexec(paste0("\"", name, "\":\"?([^\",}]*)"), line))[[1]]
    if (length(m) == 2) m[2] else ""
  }
  digits <- rep(NA_integer_, 256)
  digits[utf8ToInt("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") + 1L] <- 0:63
  decoded <- function(line, name) {
    v <- digits[as.integer(charToRaw(field(line, paste0(name, "64")))) + 1L]
    v <- v[!is.na(v)]
    n <- (length(v) * 6) %/% 8
    if (n == 0) return("")
    v <- matrix(c(v, integer(-length(v) %% 4)), nrow = 4)
    bytes <- rbind(v[1, ] * 4L + v[2, ] %/% 16L, v[2, ] %% 16L * 16L + v[3, ] %/% 4L, v[3, ] %% 4L * 64L + v[4, ])
    bytes <- bytes[seq_len(n)]
    s <- rawToChar(as.raw(bytes[bytes != 0]))
    Encoding(s) <- "UTF-8"
    s
  }
  nextLine <- function() {
    line <- readLines(requests, n = 1, warn = FALSE)
    if (length(line) == 0) leave(0)
    line
  }

  # --- what cells see -------------------------------------------------------------
  ask <- function(prompt) {
    if (is.null(cell) || !cell$stdin) return(NULL)
    suspendInterrupts({
      send(list(event = "input", id = cell$id, prompt = prompt, password = FALSE))
      repeat {
        line <- nextLine()
        if (field(line, "op") == "input" && as.numeric(field(line, "id")) == cell$id) break
      }
      if (field(line, "interrupted") == "true") tools::pskill(Sys.getpid(), tools::SIGINT) # comes after this block
    })
    if (field(line, "eof") == "true") NULL else decoded(line, "text")
  }
  replace <- function(name, f) {
    environment(f) <- environment(send)
    unlockBinding(name, baseenv())
    assign(name, f, envir = baseenv())
    lockBinding(name, baseenv())
  }
  originals <- list(quit = base::quit, readLines = base::readLines)
  leave <- function(status) originals$quit("no", status = status, runLast = FALSE)
  replace("readline", function(prompt = "") {
    answer <- ask(prompt)
    if (is.null(answer)) "" else answer
  })
  replace("readLines", function(con = stdin(), n = -1L, ok = TRUE, warn = TRUE, encoding = "unknown", skipNul = FALSE) {
    ours <- identical(con, "stdin") || inherits(con, "connection") && summary(con)$description == "stdin"
    if (!ours || is.null(cell)) return(originals$readLines(con, n, ok, warn, encoding, skipNul))
    lines <- character()
    while (n < 0 || length(lines) < n) {
      answer <- ask("")
      if (is.null(answer)) break
      lines <- c(lines, answer)
    }
    lines
  })
  leaveCell <- function(save = "default", status = 0, runLast = TRUE) {
    if (runLast && exists(".Last", envir = globalenv(), mode = "function")) get(".Last", envir = globalenv())()
    if (!is.null(cell)) finish(list(status = "exit", exit_code = as.integer(status) %% 256L))
    leave(status)
  }
  replace("quit", leaveCell)
  replace("q", leaveCell)

  # --- values ---------------------------------------------------------------------
  cut <- function(s, most = longest) if (nchar(s) > most) paste0(substr(s, 1, most), "… (cut)") else s
  printed <- function(v) cut(paste(utils::capture.output(if (isS4(v)) methods::show(v) else print(v)), collapse = "\n"))
  escaped <- function(s) gsub(">", "&gt;", gsub("<", "&lt;", gsub("&", "&amp;", s, fixed = TRUE), fixed = TRUE), fixed = TRUE)
  table <- function(d) {
    most <- 200L
    rows <- utils::head(d, most)
    cells <- vapply(rows, function(column) escaped(format(column)), character(nrow(rows)))
    dim(cells) <- dim(rows)
    line <- function(tag, x) paste0("<", tag, ">", x, "</", tag, ">", collapse = "")
    body <- vapply(seq_len(nrow(rows)), function(i) paste0("<tr>", line("th", escaped(rownames(rows)[i])), line("td", cells[i, ]), "</tr>"), "")
    more <- if (nrow(d) > most) sprintf("<caption>%d of %d rows</caption>", most, nrow(d)) else ""
    paste0("<table>", more, "<thead><tr><th></th>", line("th", escaped(names(d))), "</tr></thead><tbody>", paste(body, collapse = ""), "</tbody></table>")
  }
  bundle <- function(v) {
    b <- list("text/plain" = printed(v))
    if (is.data.frame(v) && length(v) > 0 && !any(vapply(v, is.list, NA)))
      b[["text/html"]] <- tryCatch(cut(table(as.data.frame(v))), error = function(e) NULL)
    b[!vapply(b, is.null, NA)]
  }

  # --- cells ----------------------------------------------------------------------
  cellEval <- function(expr) withVisible(eval(expr, globalenv()))
  where <- function(ref) {
    if (is.null(ref)) return("")
    paste0(attr(ref, "srcfile")$filename, ":", ref[1], ": ")
  }
  # trace is the error and the calls that led to it, the latest last, with lines of cells.
  trace <- function(e, calls, top) {
    names <- vapply(calls, function(call) if (is.symbol(call[[1]])) as.character(call[[1]]) else "", "")
    from <- match("cellEval", names)
    calls <- if (is.na(from)) list() else calls[-seq_len(min(from + 3L, length(calls)))]
    names <- vapply(calls, function(call) if (is.symbol(call[[1]])) as.character(call[[1]]) else "", "")
    own <- match(c(".handleSimpleError", "h"), names)
    if (any(!is.na(own))) calls <- calls[seq_len(min(own, na.rm = TRUE) - 1L)]
    else if (length(calls) > 0 && is.function(calls[[length(calls)]][[1]])) calls <- calls[-length(calls)]
    lines <- vapply(calls, function(call) paste0("  ", where(attr(call, "srcref")), deparse(call, nlines = 1L)[1]), "")
    call <- conditionCall(e)
    place <- if (is.null(call)) "Error: " else paste0("Error in ", deparse(call, nlines = 1L)[1], " : ")
    cut(paste(c(paste0(place, conditionMessage(e)), paste0("  at ", where(top), "top level"), lines), collapse = "\n"), 1e5)
  }
  run <- function(line) {
    count <<- count + 1L
    name <- paste0("cell[", count, "]")
    cell <<- list(id = as.numeric(field(line, "id")), mark = field(line, "mark"), stdin = field(line, "stdin") == "true")
    done <- list(status = "ok")
    sinks <- sink.number()
    top <- NULL
    calls <- list()
    failed <- function(e, traceback)
      list(status = "error", error = list(name = class(e)[1], message = cut(conditionMessage(e), 1e5), traceback = traceback))
    code <- decoded(line, "code")
    exprs <- tryCatch(
      parse(text = code, keep.source = TRUE, srcfile = srcfilecopy(name, strsplit(code, "\n", fixed = TRUE)[[1]])),
      error = function(e) {
        message <- sub("^<text>:", paste0(name, ":"), conditionMessage(e))
        done <<- list(status = "error", error = list(name = "parseError", message = message, traceback = message))
        NULL
      })
    if (!is.null(exprs)) {
      refs <- attr(exprs, "srcref")
      done <- tryCatch(
        allowInterrupts(withCallingHandlers({
          for (i in seq_along(exprs)) {
            top <- refs[[i]]
            got <- cellEval(exprs[[i]])
            if (got$visible && i < length(exprs)) if (isS4(got$value)) methods::show(got$value) else print(got$value)
          }
          if (length(exprs) > 0 && got$visible) done$value <- bundle(got$value)
          done
        }, error = function(e) calls <<- sys.calls())),
        error = function(e) failed(e, trace(e, calls, top)),
        interrupt = function(e) list(status = "interrupted", error = list(name = "interrupt", message = "the cell was interrupted", traceback = "")))
    }
    while (sink.number() > sinks) sink()
    finish(done)
  }
  finish <- function(done) {
    shown <- getOption("llmsandbox.flush")
    if (is.function(shown)) suspendInterrupts(shown()) # the page being drawn is this cell's
    flush(stdout())
    flush(stderr())
    for (to in outputs) {
      writeBin(c(as.raw(0), charToRaw(cell$mark)), to)
      flush(to)
    }
    id <- cell$id
    cell <<- NULL
    send(c(list(event = "done", id = id, count = count), done))
  }

  # --- requests beside cells -------------------------------------------------
  complete <- function(code, cursor) {
    before <- substr(code, 1, cursor)
    line <- sub("^.*\n", "", before)
    utils:::.assignLinebuffer(line)
    utils:::.assignEnd(nchar(line))
    token <- utils:::.guessTokenFromLine()
    utils:::.completeToken()
    matches <- utils:::.retrieveCompletions()
    list(matches = as.list(utils::head(matches, 1000)), start = cursor - nchar(token), end = cursor)
  }
  summaryOf <- function(v) sub("^ ", "", paste(utils::capture.output(utils::str(v, max.level = 1, list.len = 20)), collapse = "\n"))
  inspect <- function(code, cursor) {
    before <- regmatches(substr(code, 1, cursor), regexpr("[[:alnum:]._]*$", substr(code, 1, cursor)))
    after <- regmatches(substring(code, cursor + 1), regexpr("^[[:alnum:]._]*", substring(code, cursor + 1)))
    name <- paste0(before, after)
    if (name == "" || !exists(name, envir = globalenv())) return("")
    v <- get(name, envir = globalenv())
    shown <- if (is.function(v)) paste(utils::capture.output(print(args(v))), collapse = "\n") else summaryOf(v)
    cut(paste0(name, ": ", class(v)[1], "\n", shown), 1e5)
  }
  variables <- function() lapply(ls(globalenv()), function(name) {
    v <- tryCatch(get(name, envir = globalenv()), error = function(e) e)
    list(name = name, type = class(v)[1], value = cut(strsplit(summaryOf(v), "\n", fixed = TRUE)[[1]][1], 200))
  })
  reset <- function() {
    rm(list = ls(globalenv(), all.names = TRUE), envir = globalenv())
    count <<- 0L
  }
  serve <- function(line) {
    op <- field(line, "op")
    if (op == "run") return(run(line))
    if (op == "input") return(NULL) # of a cell that is over
    reply <- list(event = "reply", id = as.numeric(field(line, "id")))
    cursor <- suppressWarnings(as.integer(field(line, "cursor")))
    more <- tryCatch(switch(op,
      complete = complete(decoded(line, "code"), cursor),
      inspect = list(text = inspect(decoded(line, "code"), cursor)),
      variables = list(variables = variables()),
      reset = { reset(); NULL },
      list(error = paste("unknown request", op))), error = function(e) list(error = conditionMessage(e)))
    send(c(reply, more))
  }

  options(warn = 1, keep.source = TRUE)
  send(list(event = "ready", language = "r", version = paste(R.version$major, R.version$minor, sep = "."), flavor = "R"))
  suspendInterrupts(repeat {
    line <- nextLine()
    # An interrupt that came between cells is ignored.
    tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL)
    serve(line)
  })
})
