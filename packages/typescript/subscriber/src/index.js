export { AaepSubscriber } from "@element/aaep-subscriber.js";
