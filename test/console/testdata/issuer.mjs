// An OpenID Connect issuer, which lets anybody in by any name and prints its URL. anna is an engineer, bob is one of the staff, and others are nobody.
import { createServer } from "node:http";
import Provider from "../../../web/node_modules/oidc-provider/lib/index.js";

const groups = { anna: ["engineers", "staff"], bob: ["staff"] };
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(url, {
    // A native client may be redirected to any port of the loopback.
    clients: [{ client_id: "console", client_secret: "a secret of the test", application_type: "native", token_endpoint_auth_method: "client_secret_basic", redirect_uris: ["http://127.0.0.1/console/oidc/callback"] }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
    findAccount: (_, name) => ({ accountId: name, claims: () => ({ sub: name, email: `${name}@example.org`, email_verified: true, groups: groups[name] ?? [] }) }),
    cookies: { keys: ["of the test"] },
    pkce: { required: () => true },
  });
  server.on("request", provider.callback());
  console.log(url);
});
process.stdin.on("end", () => process.exit()).resume(); // it ends with the test
