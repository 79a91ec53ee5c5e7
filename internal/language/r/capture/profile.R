# What R reads before the program: it only arranges for the rest to be loaded when the
# program first plots.
local({
  support <- "@support@"
  loaded <- NULL
  capture <- function() {
    if (is.null(loaded)) {
      new <- new.env(parent = baseenv())
      new$support <- support
      new$directory <- "@directory@"
      loaded <<- tryCatch(suppressWarnings({
        sys.source(file.path(support, "capture.R"), new)
        new
      }), error = function(e) { # the program has removed it
        nothing <- function(...) NULL
        list(open_page_device = function(...) grDevices::pdf(NULL), drawn = nothing, closing = nothing, closed = nothing,
          flush = nothing, finish = nothing, watch_widgets = nothing)
      })
    }
    loaded
  }
  options(
    # flush is a kernel's, which calls it after each cell.
    device = function(...) capture()$open_page_device(...),
    llmsandbox.flush = function() if (!is.null(loaded)) loaded$flush()
  )
  setHook("plot.new", function() capture()$drawn("graphics"))
  setHook("grid.newpage", function() capture()$drawn("grid"))
  setHook(packageEvent("grDevices", "onLoad"), function(...) {
    # The function keeps its text, and with it its messages: two calls are added.
    space <- asNamespace("grDevices")
    shut <- get("dev.off", space)
    steps <- as.list(body(shut))
    last <- length(steps)
    body(shut) <- as.call(c(
      steps[1], call("<-", as.name(".closing"), as.call(list(function(which) capture()$closing(which), as.name("which")))),
      steps[-c(1, last)], as.call(list(function(what) capture()$closed(what), as.name(".closing"))), steps[last]))
    unlockBinding("dev.off", space)
    assign("dev.off", shut, space)
    lockBinding("dev.off", space)
  })
  setHook(packageEvent("htmlwidgets", "onLoad"), function(...) capture()$watch_widgets())
  # Devices that the program leaves open are closed, as R does itself, but while there is
  # still somebody to look at them.
  reg.finalizer(environment(), function(e) if (!is.null(loaded)) loaded$finish(), onexit = TRUE)
  before <- "@before@"
  if (nzchar(before)) sys.source(before, baseenv())
})
