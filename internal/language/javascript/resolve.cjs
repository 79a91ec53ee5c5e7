// Lets import find the libraries that require finds by NODE_PATH.
'use strict';
const { delimiter, join } = require('node:path');
const { pathToFileURL } = require('node:url');
const module_ = require('node:module');

const dirs = (process.env.NODE_PATH || '').split(delimiter).filter(Boolean);
const bases = dirs.map((dir) => pathToFileURL(join(dir, '..', 'library.mjs')).href);
const bare = (name) => !/^(\.{0,2}\/|#|[a-z][a-z0-9+.-]*:)/i.test(name);
const missing = (err) => err && (err.code === 'ERR_MODULE_NOT_FOUND' || err.code === 'MODULE_NOT_FOUND');

// What the importing file's own directories have comes first.
if (bases.length && module_.registerHooks) {
  module_.registerHooks({
    resolve(name, context, next) {
      try {
        return next(name, context);
      } catch (err) {
        if (!bare(name) || !missing(err) || context.conditions?.includes('require')) throw err;
        for (const parentURL of bases) {
          try {
            return next(name, { ...context, parentURL });
          } catch (again) {
            if (!missing(again)) throw again;
          }
        }
        throw err;
      }
    },
  });
} else if (bases.length && module_.register && require('node:worker_threads').isMainThread) {
  // Older versions resolve in a thread of its own.
  module_.register(pathToFileURL(join(__dirname, 'resolve.mjs')).href, { data: bases });
}
