//! What the OpenAPI document says besides the routes.

use std::collections::BTreeMap;

use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr, Required,
    Schema,
    request_body::RequestBody,
    security::{ApiKey, ApiKeyValue, SecurityScheme},
};

/// The document without a route.
pub fn base() -> OpenApi {
    let license = LicenseBuilder::new().name("MIT").identifier(Some("MIT")).build();
    let info = InfoBuilder::new()
        .title("Postroom API")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Takes mail, sends it, and tells the truth about it."))
        .license(Some(license))
        .build();
    let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-Api-Key")));
    let components = ComponentsBuilder::new().security_scheme("ApiKeyAuth", key).build();
    OpenApiBuilder::new().info(info).components(Some(components)).build()
}

/// Says of all routes alike what none says of itself: a name that no other operation has, and
/// whether the body may be left out.
pub fn complete(mut document: OpenApi) -> OpenApi {
    let schemas = document.components.as_ref().map(|it| &it.schemas);
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            operation.operation_id = Some(operation_id(method, path));
            if let Some(RefOr::T(body)) = &mut operation.request_body
                && may_be_absent(body, schemas)
            {
                body.required = Some(Required::False);
            }
        }
    }
    document
}

/// `patch_jobs_id` for `PATCH /jobs/{id}`.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|it: char| !it.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method.to_owned(), |id, word| id + "_" + word)
}

/// No body counts as `{}`, so it may be absent where no field must be there.
fn may_be_absent(body: &RequestBody, schemas: Option<&BTreeMap<String, RefOr<Schema>>>) -> bool {
    let Some(RefOr::T(content)) = body.content.get("application/json") else { return false };
    let schema = match &content.schema {
        Some(RefOr::T(schema)) => Some(schema),
        Some(RefOr::Ref(to)) => {
            let name = to.ref_location.rsplit('/').next().unwrap_or_default();
            match schemas.and_then(|it| it.get(name)) {
                Some(RefOr::T(schema)) => Some(schema),
                _ => None,
            }
        }
        None => None,
    };
    matches!(schema, Some(Schema::Object(object)) if object.required.is_empty())
}

#[cfg(test)]
mod tests {
    use super::operation_id;

    #[test]
    fn an_operation_is_named_by_its_method_and_its_path() {
        assert_eq!(
            operation_id("patch", "/admin/api/smtp-accounts/{id}"),
            "patch_admin_api_smtp_accounts_id"
        );
    }
}
