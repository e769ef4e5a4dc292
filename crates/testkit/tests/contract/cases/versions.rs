//! ApiVersions and what becomes of requests in versions that are not offered.

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, DescribeClusterRequest, ResponseHeader,
};
use kafka_protocol::protocol::Decodable;

use crate::lab::{Lab, expect};

super::cases! {
    a_version_that_is_too_new_is_answered_with_the_ones_there_are,
    a_version_that_is_not_offered_closes_the_connection,
    a_request_that_does_not_parse_closes_the_connection,
    the_cluster_describes_itself,
    all_apis_are_offered_in_versions_that_real_kafka_has,
}

/// A request header of version 1, which flexible versions extend by a tag count.
fn header(api: i16, version: i16, flexible: bool) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_i16(api);
    frame.put_i16(version);
    frame.put_i32(7);
    frame.put_i16(-1);
    if flexible {
        frame.put_u8(0);
    }
    frame
}

async fn a_version_that_is_too_new_is_answered_with_the_ones_there_are(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;

    wire.send_frame(&header(ApiKey::ApiVersions as i16, 99, true))
        .await?;
    let mut answer = wire.read_frame().await?;

    expect(
        "correlation",
        ResponseHeader::decode(&mut answer, 0)?.correlation_id,
        7,
    )?;
    let response = ApiVersionsResponse::decode(&mut answer, 0)?;
    expect("code", response.error_code, 35)?;
    ensure!(
        response
            .api_keys
            .iter()
            .any(|api| api.api_key == ApiKey::ApiVersions as i16),
        "the answer says which versions there are"
    );
    Ok(())
}

async fn a_version_that_is_not_offered_closes_the_connection(lab: &Lab) -> Result<()> {
    for (api, version) in [
        (ApiKey::Produce as i16, 2),
        (ApiKey::Fetch as i16, 99),
        (9_999, 0),
    ] {
        let mut wire = lab.wire().await?;
        wire.send_frame(&header(api, version, false)).await?;
        wire.closed()
            .await
            .with_context(|| format!("API {api} version {version}"))?;
    }
    Ok(())
}

async fn a_request_that_does_not_parse_closes_the_connection(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;
    let mut frame = header(ApiKey::ListOffsets as i16, 5, false);
    frame.put_slice(&[0x7f; 3]);

    wire.send_frame(&frame).await?;

    wire.closed().await
}

async fn the_cluster_describes_itself(lab: &Lab) -> Result<()> {
    let mut wire = lab.wire().await?;

    let cluster = wire
        .call(&DescribeClusterRequest::default().with_endpoint_type(1), 1)
        .await?;

    expect("code", cluster.error_code, 0)?;
    ensure!(!cluster.cluster_id.is_empty(), "the cluster has an id");
    let mut ids: Vec<i32> = cluster
        .brokers
        .iter()
        .map(|broker| broker.broker_id.0)
        .collect();
    ids.sort_unstable();
    expect("brokers", ids, vec![1, 2])
}

/// Newer brokers may offer more; mini-kafka may not offer what no broker has.
async fn all_apis_are_offered_in_versions_that_real_kafka_has(lab: &Lab) -> Result<()> {
    let wire = lab.wire().await?;
    for (api, oldest, newest) in [
        (ApiKey::Produce, 3, 12),
        (ApiKey::Fetch, 4, 17),
        (ApiKey::ListOffsets, 1, 10),
        (ApiKey::Metadata, 0, 13),
        (ApiKey::OffsetForLeaderEpoch, 2, 4),
        (ApiKey::CreateTopics, 2, 7),
        (ApiKey::DescribeProducers, 0, 0),
        (ApiKey::IncrementalAlterConfigs, 0, 1),
        (ApiKey::EndTxn, 0, 5),
    ] {
        let (min, max) = wire
            .versions(api)
            .with_context(|| format!("{api:?} is offered"))?;
        ensure!(
            min <= oldest && max >= newest,
            "{api:?} is offered in {min} to {max}"
        );
    }
    Ok(())
}
