// A gRPC client in TypeScript, with the types that proto-loader-gen-types makes of the .proto: it hears
// a question and says yes.
//
// Arguments: the .proto's folder, the address, a token, and "stream" or "calls".
import * as grpc from "@grpc/grpc-js";
import * as loader from "@grpc/proto-loader";
import type { ProtoGrpcType } from "./made/aaep";
import type { AaepMessage__Output } from "./made/aaep/v1/AaepMessage";

const [folder, address, token, way] = process.argv.slice(2);
const definition = loader.loadSync("aaep/v1/aaep.proto", { includeDirs: [folder], keepCase: true, defaults: true });
const proto = grpc.loadPackageDefinition(definition) as unknown as ProtoGrpcType;
const client = new proto.aaep.v1.AaepService(address, grpc.credentials.createInsecure());
const metadata = new grpc.Metadata();
metadata.set("authorization", `Bearer ${token}`);

type Said = { type: string; [member: string]: unknown };
const message = (value: Said) => ({ json: Buffer.from(JSON.stringify(value)) });
const read = (received: AaepMessage__Output): Said => JSON.parse(received.json.toString());

const request = message({
  type: "subscription.request", aaep_version: "1.0.0", subscriber_id: "typescript",
  capabilities: { supports_confirmation_reply: true, coalesce_boundaries: ["none"] },
});

function accepted(value: Said): string {
  if (value.type !== "subscription.accepted") throw new Error(JSON.stringify(value));
  return String(value.subscription_id);
}

const yes = (event: Said, subscription: string) => message({
  type: "confirmation.reply", reply_token: event.reply_token, decision: "accept",
  subscription_id: subscription, timestamp: new Date().toISOString(),
});

/** Says yes to what is asked; true at the end of the session. */
function hear(event: Said, reply: (event: Said) => void): boolean {
  console.log(event.type);
  if (event.type === "aaep:agent.awaiting.confirmation") reply(event);
  return event.type === "aaep:agent.session.completed";
}

const failed = (error: Error) => { console.error(error); process.exit(1); };

if (way === "stream") {
  const call = client.Subscribe(metadata);
  let subscription = "";
  call.on("data", (received: AaepMessage__Output) => {
    const said = read(received);
    if (!subscription) {
      subscription = accepted(said);
      console.log("listening");
    } else if (hear(said, (event) => call.write(yes(event, subscription)))) {
      call.end();
      process.exit(0);
    }
  });
  call.on("error", failed);
  call.write(request);
} else {
  client.Open(request, metadata, (error, answer) => {
    if (error || !answer) return failed(error ?? new Error("no answer"));
    const subscription = accepted(read(answer));
    const call = client.Listen({ subscription_id: subscription }, metadata);
    console.log("listening");
    call.on("data", (received: AaepMessage__Output) => {
      const reply = (event: Said) => client.Reply(yes(event, subscription), metadata, (error, answer) => {
        if (error || answer?.json.length) failed(error ?? new Error("a reply has no answer"));
      });
      if (hear(read(received), reply)) process.exit(0);
    });
    call.on("error", failed);
  });
}
