// A real OpenID provider over TLS, with the device flow and PKCE, whose tokens are for one hub.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:https";

import Provider from "oidc-provider";

export const AUDIENCE = "aaep-hub";
export const RESOURCE = "urn:example:aaep-hub";

export class Login {
  /**
   * `page` is where people may be sent back to, `seconds` how long an access token is good.
   */
  static async start({ cert, key, port, page, seconds }) {
    const login = new Login();
    login.issuer = `https://localhost:${port}`;
    /** What clients were given and had taken back. */
    login.grants = [];
    login.revoked = 0;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwk = { ...privateKey.export({ format: "jwk" }), kid: "first", use: "sig", alg: "ES256" };
    const provider = new Provider(login.issuer, {
      clients: [{ client_id: "aaep", token_endpoint_auth_method: "none", application_type: "web", redirect_uris: [page],
        id_token_signed_response_alg: "ES256",
        response_types: ["code"],
        grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"] }],
      cookies: { keys: [randomBytes(16).toString("hex")] },
      jwks: { keys: [jwk] },
      features: {
        deviceFlow: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({ scope: "", audience: AUDIENCE, accessTokenTTL: seconds,
            accessTokenFormat: "jwt", jwt: { sign: { alg: "ES256" } } }),
          useGrantedResource: () => true,
        },
      },
      // Short-lived, and renewed with a refresh token that counts once.
      rotateRefreshToken: true,
      issueRefreshToken: () => true,
    });
    provider.on("grant.success", ({ oidc }) => login.grants.push(oidc.params.grant_type));
    provider.on("refresh_token.destroyed", () => (login.revoked += 1));
    provider.on("server_error", (_, error) => (login.error = error));
    login.server = createServer({ cert, key }, provider.callback());
    await new Promise((done) => login.server.listen(port, "127.0.0.1", done));
    return login;
  }

  renewed() {
    return this.grants.filter((grant) => grant === "refresh_token").length;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }
}

/** Somebody signs in at the provider, and says yes. */
export async function signIn(page, name) {
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.getByRole("button", { name: "Continue" }).click();
}
