//! The one seam between this library and a hub: a method, a path, a key, a body; a status, a body.
//! Everything above is the same code wherever the hub is.

use std::sync::atomic::AtomicBool;
#[cfg(feature = "embedded")]
use std::sync::atomic::Ordering;

use aaep_transport::client::{ClientError, HttpClient, SESSION_SECRET_HEADER, SessionSecret};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

/// What is done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

/// Where the hub is.
pub(crate) enum Wire {
    /// Somewhere else.
    Remote(Box<HttpClient>),
    /// In this process.
    #[cfg(feature = "embedded")]
    Embedded(aaep_hub::Hub, aaep_engine::Principal),
}

/// There is no answer.
pub(crate) enum Lost {
    /// It may come if the same is sent again.
    Later(ClientError),
    /// It never will.
    Never(ClientError),
}

impl Wire {
    /// Calls the hub. `sent` becomes true before anything of the call can reach it.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        secret: Option<&SessionSecret>,
        body: Bytes,
        sent: &AtomicBool,
    ) -> Result<(u16, Bytes), Lost> {
        match self {
            Self::Remote(client) => remote(client, method, path, key, secret, body, sent).await,
            #[cfg(feature = "embedded")]
            Self::Embedded(hub, agent) => {
                let method = match method {
                    Method::Get => "GET",
                    Method::Post => "POST",
                    Method::Delete => "DELETE",
                };
                sent.store(true, Ordering::Relaxed);
                Ok(hub.agent_call(agent, method, path, key, body).await)
            }
        }
    }
}

async fn remote(
    client: &HttpClient,
    method: Method,
    path: &str,
    key: Option<&str>,
    secret: Option<&SessionSecret>,
    body: Bytes,
    sent: &AtomicBool,
) -> Result<(u16, Bytes), Lost> {
    let mut headers = HeaderMap::new();
    if method == Method::Post {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(key) = key.and_then(|key| HeaderValue::from_str(key).ok()) {
        headers.insert("idempotency-key", key);
    }
    if let Some(secret) = secret.and_then(SessionSecret::header) {
        headers.insert(SESSION_SECRET_HEADER, secret);
    }
    let method = match method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
        Method::Delete => http::Method::DELETE,
    };
    match client.request_noting(method, path, headers, body, sent).await {
        Ok(answer) => Ok((answer.status.as_u16(), answer.body)),
        Err(error) => Err(match error {
            ClientError::Unreachable(_) | ClientError::Broken(_) | ClientError::TooSlow => {
                Lost::Later(error)
            }
            _ => Lost::Never(error),
        }),
    }
}
