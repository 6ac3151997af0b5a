//! Bodies that are documents: lists of blocks, tags, policies, settings.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_blocks_are_any_xml() {
    let stamp = open().await;
    let stage = |id: &str| put(&format!("/box/b?comp=block&blockid={id}")).body(id).gives(201);
    let commit = |list: &str| put("/box/b?comp=blocklist").body(format!("<BlockList>{list}</BlockList>"));
    let long = "a".repeat(65);
    let rows = [
        stage("MDA="),
        stage("MDE="),
        stage("MDI%3D"),
        commit("<Latest>MDA&#61;</Latest><Latest>MDE&#x3d;</Latest>").gives(201),
        get("/box/b").says("MDA=MDE="),
        commit("<Committed><![CDATA[MDE=]]></Committed><Committed>M<!-- -->DA=</Committed>").gives(201),
        get("/box/b").says("MDE=MDA="),
        commit("<Latest>&unknown;</Latest>").fails(400, "InvalidXmlDocument"),
        commit("<Latest>MDA=</Latest").fails(400, "InvalidXmlDocument"),
        put("/box/b?comp=blocklist").fails(400, "InvalidHeaderValue").names_header("Content-Length", "0"),
        commit("<Latest/>").fails(400, "InvalidXmlDocument").has("Reason", "Block ID cannot be empty"),
        commit("<Latest></Latest>")
            .fails(400, "InvalidXmlDocument")
            .has("Reason", "Block ID cannot be empty"),
        put("/box/b?comp=blocklist").body("<Blocks/>").fails(400, "InvalidXmlDocument"),
        commit("<Latest>?</Latest>").fails(400, "InvalidBlockId"),
        commit("<Latest>MDk=</Latest>").fails(400, "InvalidBlockList"),
        commit("<Uncommitted>MDA=</Uncommitted>").fails(400, "InvalidBlockList"),
        put(&format!("/box/b?comp=block&blockid={long}")).body("x").fails(400, "InvalidQueryParameterValue"),
        put("/box/b?comp=block&blockid=MDAw").body("x").gives(201),
        put("/box/b?comp=block&blockid=MDAwMA==").body("x").fails(400, "InvalidBlobOrBlock"),
        put("/box/log?comp=block&blockid=MDAw").body("x").fails(409, "InvalidBlobType"),
        put("/box/log?comp=blocklist").body("<BlockList/>").fails(409, "InvalidBlobType"),
        get("/box/log?comp=blocklist").fails(409, "InvalidBlobType"),
        get("/box/none?comp=blocklist").fails(404, "BlobNotFound"),
        get("/none/b?comp=blocklist").fails(404, "ContainerNotFound"),
        get("/box/b?comp=blocklist&blocklisttype=all")
            .has("CommittedBlocks", ANY)
            .has("UncommittedBlocks", ANY)
            .has_header("x-ms-blob-content-length", "8")
            .has_header("etag", ANY),
        get("/box/b?comp=blocklist").has("Name", "MDE=").has("Size", "4"),
    ];
    answers(&stamp, rows).await;
    // A snapshot has the blocks of its time, and none that wait.
    let snapshot = told(&stamp, put("/box/b?comp=snapshot"), "x-ms-snapshot").await;
    let rows = [
        commit("<Latest>MDAw</Latest>").gives(201),
        get(&format!("/box/b?comp=blocklist&blocklisttype=all&snapshot={snapshot}"))
            .has("UncommittedBlocks", "")
            .says("MDE=")
            .has_header("x-ms-blob-content-length", "8"),
        get(&format!("/box/b?comp=blocklist&snapshot={snapshot}")).says("MDA="),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_the_service() {
    let stamp = open().await;
    let path = "/?restype=service&comp=properties";
    let set = |inside: &str| {
        put(path).body(format!("<StorageServiceProperties>{inside}</StorageServiceProperties>")).gives(202)
    };
    let site = |inside: &str| set(&format!("<StaticWebsite>{inside}</StaticWebsite>"));
    let kept = |inside: &str| set(&format!("<DeleteRetentionPolicy>{inside}</DeleteRetentionPolicy>"));
    let (document, value) = ("InvalidXmlDocument", "InvalidXmlNodeValue");
    let off = "<Enabled>false</Enabled>";
    let rows = [
        site("<Enabled>true</Enabled><IndexDocument>i.html</IndexDocument>"),
        get(path).has("IndexDocument", "i.html"),
        site(&format!("{off}<IndexDocument>i.html</IndexDocument>")).fails(400, document),
        site(&format!("{off}<ErrorDocument404Path>e.html</ErrorDocument404Path>")).fails(400, document),
        site(&format!("{off}<DefaultIndexDocumentPath>d.html</DefaultIndexDocumentPath>"))
            .fails(400, document),
        site("<IndexDocument>i.html</IndexDocument>").fails(400, document),
        site("<Enabled>perhaps</Enabled>").fails(400, value),
        get(path).has("IndexDocument", "i.html"),
        site(off),
        site(&format!("{off}<IndexDocument/>")),
        kept("<Enabled>true</Enabled><Days>5</Days>"),
        get(path).has("Days", "5").has("AllowPermanentDelete", "false"),
        kept("<Enabled>true</Enabled>").fails(400, document),
        kept("<Enabled>true</Enabled><Days>0</Days>").fails(400, document),
        kept("<Enabled>true</Enabled><Days>366</Days>").fails(400, document),
        kept("<Days>5</Days>").fails(400, document),
        kept("<Enabled>perhaps</Enabled>").fails(400, value),
        set("<Unknown/>").fails(400, document),
        set("<DefaultServiceVersion>new</DefaultServiceVersion>").fails(400, value),
        put(path).body("<Other/>").fails(400, document),
        put(path).body("<").fails(400, document),
        put(path).fails(400, document),
        get("/?restype=service&comp=stats").fails(400, "InvalidQueryParameterValue"),
        get("/?restype=service&comp=stats").at_secondary().has("Status", "live"),
        put("/more?restype=container").at_secondary().fails(403, "InsufficientAccountPermissions"),
        get("/?restype=account&comp=properties").has_header("x-ms-account-kind", "StorageV2"),
    ];
    answers(&stamp, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_document_and_where() {
    let stamp = open().await;
    let document = |row: Row, line: &str, position: &str| {
        row.fails(400, "InvalidXmlDocument")
            .has("LineNumber", line)
            .has("LinePosition", position)
            .has("Reason", ANY)
    };
    let node = |row: Row, name: &str, value: &str| {
        row.fails(400, "InvalidXmlNodeValue").has("XmlNodeName", name).has("XmlNodeValue", value)
    };
    let settings = |inside: &str| {
        let body = format!("<StorageServiceProperties>\n{inside}\n</StorageServiceProperties>");
        put("/?restype=service&comp=properties").body(body)
    };
    let list = |body: &str| put("/box/a?comp=blocklist").body(body);
    let tags = |body: &str| put("/box/a?comp=tags").body(body);
    let acl = |inside: &str| {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        put("/box?restype=container&comp=acl").body(body)
    };
    let policy = |id: &str, inside: &str| {
        format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{inside}</AccessPolicy></SignedIdentifier>")
    };
    let six: String = (0..6).map(|number| policy(&number.to_string(), "")).collect();
    let rows = [
        document(list("<BlockList>\n<Latest>MDA=</Later></BlockList>"), "2", ANY),
        document(list("<BlockList>\n  <Newest>MDA=</Newest></BlockList>"), "2", ANY),
        document(list("<Blocks/>"), "1", ANY),
        document(tags("<Tags><TagSet>\n<Tag><Key>a</Key></Tag></TagSet></Tags>"), "2", ANY),
        document(tags("<Labels/>"), "1", "2"),
        document(tags("<Tags"), "1", ANY),
        document(settings("<Unknown/>"), "2", "2"),
        document(settings("<StaticWebsite></StaticWebsite>"), "2", ANY),
        document(
            settings("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>x</Days></DeleteRetentionPolicy>"),
            "2",
            ANY,
        ),
        document(
            settings(
                "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>",
            ),
            "0",
            "0",
        )
        .says("Retention days must be"),
        node(settings("<StaticWebsite><Enabled>perhaps</Enabled></StaticWebsite>"), "Enabled", "perhaps"),
        node(settings("<DefaultServiceVersion>new</DefaultServiceVersion>"), "DefaultServiceVersion", "new"),
        document(acl("<Other/>"), "1", ANY),
        document(acl(&policy("a", "<Permission>?</Permission>")), "0", "0"),
        document(acl(&six), "0", "0"),
        document(acl(&policy(&"a".repeat(65), "")), "0", "0"),
        node(acl(&policy("a", "<Start>soon</Start>")), "Start", "soon"),
        acl(&policy("a", "<Permission>rl</Permission>")),
        acl(""),
        put("/box?restype=container&comp=acl"),
        // Tags that are read and none that a blob can have.
        tags("<Tags><TagSet><Tag><Key></Key><Value>1</Value></Tag></TagSet></Tags>")
            .fails(400, "EmptyTagName"),
        tags("<Tags><TagSet><Tag><Key>a</Key><Value>?</Value></Tag></TagSet></Tags>")
            .fails(400, "InvalidTag"),
        tags(&format!(
            "<Tags><TagSet>{}</TagSet></Tags>",
            "<Tag><Key>a</Key><Value>1</Value></Tag>".repeat(2)
        ))
        .fails(400, "DuplicateTagNames"),
        tags(&format!(
            "<Tags><TagSet>{}</TagSet></Tags>",
            "<Tag><Key>a</Key><Value>1</Value></Tag>".repeat(11)
        ))
        .fails(400, "TagsTooLarge"),
        tags("<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>").gives(204),
        Row::of("HEAD", "/box/a").has_header("x-ms-tag-count", "1"),
    ];
    answers(&stamp, rows).await;
}
