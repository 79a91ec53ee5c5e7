// What resolve.cjs does, in the thread that older versions of Node resolve in.
let bases = [];
export function initialize(data) {
  bases = data;
}

const bare = (name) => !/^(\.{0,2}\/|#|[a-z][a-z0-9+.-]*:)/i.test(name);
const missing = (err) => err && err.code === 'ERR_MODULE_NOT_FOUND';

export async function resolve(name, context, next) {
  try {
    return await next(name, context);
  } catch (err) {
    if (!bare(name) || !missing(err)) throw err;
    for (const parentURL of bases) {
      try {
        return await next(name, { ...context, parentURL });
      } catch (again) {
        if (!missing(again)) throw again;
      }
    }
    throw err;
  }
}
