//! What the OpenAPI document says besides the routes.

use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder,
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
